import { describe, expect, it } from "vitest";
import { tidy } from "../../src/store/housekeeping";
import { seal } from "../../src/store/sealed";
import {
  acquireRequest,
  byKey,
  CONTROL,
  codeOf,
  decode,
  encode,
  enter,
  operationsSince,
  quietWorld,
  range,
  sha256,
} from "./stage";

const INDEX = `${CONTROL}/index`;
const indefinite = { ttlSecs: 0, reason: "for good" };
const readsTheLog = (operations: readonly string[]) =>
  operations.filter((what) => what.startsWith(`read ${CONTROL}/claims.jsonl`));

describe("the path tree", () => {
  it("has one readable file per lease, in the place of its path", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire(["file:src/a.ts", "dir:lib", "resource:gpu 1", "ref:refs/heads/topic/x", "scope:config"]);
    await a.acquire({ key: "file:src/b.ts", reach: "worktree" });
    await a.acquire("issue:01ARZ3NDEKTSV4RRFFQ69G5FAV");
    const files = world.disk
      .paths()
      .filter((path) => /\/meta[^/]*$/.test(path))
      .map((path) => path.slice(INDEX.length + 1));
    expect(files).toEqual([
      "dir/lib/meta.json",
      "file/src/a.ts/meta.json",
      "file/src/b.ts/meta@wt-00000001.json",
      "issue/01ARZ3NDEKTSV4RRFFQ69G5FAV/meta.json",
      "ref/refs/heads/topic/x/meta.json",
      "resource/gpu 1/meta.json",
      "scope/config/meta.json",
    ]);
    const { value } = JSON.parse(decode(world.disk.peek(`${INDEX}/dir/lib/meta.json`))!);
    expect(value).toMatchObject({ key: "dir:lib", agent_id: "agent:a", fencing_token: 2 });
  });

  it("costs no look at the log after leases inside a directory have come and gone", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire(["dir:a/b/c", "file:a/b/c/d", "ref:refs/heads/x/y"]);
    await a.release("dir:a/b/c", "file:a/b/c/d", "ref:refs/heads/x/y");
    for (const wanted of ["dir:a/b", "dir:a", "dir:.", "ref:refs/heads/x"]) {
      const before = world.trace.step;
      await a.acquire(wanted);
      await a.release(wanted);
      expect(readsTheLog(operationsSince(world, before)), wanted).toEqual([]);
    }
  });

  it("finds the leases of one worktree after another process has rebuilt the tree", async () => {
    const world = quietWorld();
    const guarded = { key: "dir:src", reach: "worktree" as const };
    const a = enter(world, "agent:a");
    await a.acquire(guarded);
    await a.release("dir:src");
    // Damaged behind the back of agent:a, whose process lives on, and rebuilt by another one.
    const b = enter(world, "agent:b");
    await b.acquire(["resource:r", "dir:lib"]);
    world.disk.install(`${INDEX}/resource/r/meta.json`, encode("rubbish"));
    expect(await codeOf(enter(world, "agent:c").acquire("resource:r"))).toBe("E_LOCK_CONFLICT");
    await a.acquire(guarded);
    expect(await codeOf(b.acquire("file:src/x"))).toBe("E_LOCK_CONFLICT");
  });

  describe("knows the leases without expiry", () => {
    it("also one that took the place of a lapsed lease", async () => {
      const world = quietWorld();
      const a = enter(world, "human:a");
      const b = enter(world, "human:b");
      await a.acquire("scope:one", { ttlSecs: 1 });
      world.advance(2_000);
      await b.acquire("scope:one", indefinite);
      await b.acquire("scope:two", indefinite);
      expect(await codeOf(b.acquire("scope:three", indefinite))).toBe("E_LIMIT");
    });

    it("also one that was handed over", async () => {
      const world = quietWorld();
      const a = enter(world, "human:a");
      const b = enter(world, "human:b");
      await a.acquire("scope:one", indefinite);
      await a.session.transfer(
        { key: "scope:one" as never, leaseId: null },
        { toAgent: b.actor.agentId, toWorktree: b.actor.worktreeId, toBranch: null, reason: "yours" },
      );
      await b.acquire("scope:two", indefinite);
      expect(await codeOf(b.acquire("scope:three", indefinite))).toBe("E_LIMIT");
    });

    it("also one of worktree reach", async () => {
      const world = quietWorld();
      const a = enter(world, "human:a", { policy: { indefinite: ["file"] } });
      const guarded = (path: string) => ({ key: `file:${path}`, reach: "worktree" as const });
      await a.acquire([guarded("one"), guarded("two")], indefinite);
      expect(await codeOf(a.acquire(guarded("three"), indefinite))).toBe("E_LIMIT");
    });
  });

  it("takes names that are too long for a file system", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const b = enter(world, "agent:b");
    await a.acquire("resource:r");
    const long = "ü".repeat(120);
    const deep = range(500)
      .map(() => "%%%")
      .join("/");
    for (const path of [long, `${long}/${long}`, deep, `${deep}/x`]) {
      const before = world.trace.step;
      await a.acquire(`file:${path}`);
      expect(await codeOf(b.acquire(`file:${path}`))).toBe("E_LOCK_CONFLICT");
      expect(await codeOf(b.acquire("dir:."))).toBe("E_LOCK_CONFLICT");
      if (path.includes("/"))
        expect(await codeOf(b.acquire(`dir:${path.split("/")[0]}`))).toBe("E_LOCK_CONFLICT");
      // Kept in the tree, or every later operation would have to read it from the log again.
      expect(readsTheLog(operationsSince(world, before)), path.slice(0, 20)).toEqual([]);
      await a.release(`file:${path}`);
      await b.acquire(`dir:${path}`);
      expect(await codeOf(a.acquire(`file:${path}/inside`))).toBe("E_LOCK_CONFLICT");
      await b.release(`dir:${path}`);
    }
  });

  it("is rebuilt when a file says something else than its name", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const b = enter(world, "agent:b");
    await a.acquire(["resource:one", "resource:two"]);
    const one = world.disk.peek(`${INDEX}/resource/one/meta.json`)!;
    world.disk.install(`${INDEX}/resource/two/meta.json`, one);
    expect(await codeOf(b.acquire("resource:two"))).toBe("E_LOCK_CONFLICT");
  });

  it("is not believed when its census reads as zeros: nothing is granted twice", async () => {
    const world = quietWorld();
    await enter(world, "agent:a").acquire(["file:a/b", "resource:r"]);
    const census = world.disk.paths().find((path) => path.includes("/census-"))!;
    world.disk.install(census, new Uint8Array(world.disk.peek(census)!.length));
    const b = enter(world, "agent:b");
    expect((await b.coordinator.list()).length).toBe(2);
    for (const wanted of ["file:a/b", "resource:r", "dir:."])
      expect(await codeOf(b.acquire(wanted)), wanted).toBe("E_LOCK_CONFLICT");
  });

  describe("counts the markers of leases without expiry", () => {
    const scene = async () => {
      const world = quietWorld();
      const a = enter(world, "agent:a");
      await a.acquire("scope:one", indefinite);
      await a.acquire("scope:two", indefinite);
      const markers = world.disk.paths().filter((path) => /\/indefinite\/\w+$/.test(path));
      expect(markers.length).toBe(2);
      return { world, a, markers };
    };

    it("so that a lost one lets nobody over the limit", async () => {
      const { world, a, markers } = await scene();
      for (const marker of markers) await a.platform.files.unlink(marker);
      expect(await codeOf(enter(world, "agent:a").acquire("scope:three", indefinite))).toBe("E_LIMIT");
    });

    it("so that one in another's place does not either", async () => {
      const { world, markers } = await scene();
      world.disk.install(markers[0]!, world.disk.peek(markers[1]!)!);
      expect(await codeOf(enter(world, "agent:a").acquire("scope:three", indefinite))).toBe("E_LIMIT");
    });

    it("and forgets those that were tidied away", async () => {
      const { world, a } = await scene();
      await a.release("scope:one");
      await tidy(a.store, a.logActor, { compact: false, flatIndex: {} });
      const before = world.trace.step;
      await enter(world, "agent:a").acquire("scope:three", indefinite);
      expect(readsTheLog(operationsSince(world, before))).toEqual([]);
    });

    it("and does not stumble over one that is none", async () => {
      const { world, markers } = await scene();
      world.disk.install(markers[0]!, seal({ sha256 }, { lease_id: markers[0]!.split("/").at(-1), key: 7 }));
      expect(await codeOf(enter(world, "agent:a").acquire("scope:three", indefinite))).toBe("E_LIMIT");
    });
  });

  it("keeps endings when it is tidied, for as long as a former holder may ask", async () => {
    const world = quietWorld();
    const [a, h] = [enter(world, "agent:a"), enter(world, "human:h")];
    await a.acquire("file:x");
    await h.session.evict([byKey("file:x")], { reason: "enough" });
    await tidy(h.store, h.logActor, { compact: false, flatIndex: {} });
    expect(world.disk.paths().filter((path) => /\/ended\/\w+\.json$/.test(path)).length).toBe(1);
    expect(await codeOf(a.renew("file:x"))).toBe("E_FENCING_MISMATCH");
  });

  it("tells a former holder the truth when another's ending stands in its place", async () => {
    const world = quietWorld();
    const [a, h] = [enter(world, "agent:a"), enter(world, "human:h")];
    await a.acquire(["file:x", "file:y"]);
    await h.session.evict([byKey("file:x"), byKey("file:y")], { reason: "enough" });
    const [x, y] = world.disk.paths().filter((path) => /\/ended\/\w+\.json$/.test(path));
    world.disk.install(x!, world.disk.peek(y!)!);
    for (const name of ["file:x", "file:y"]) expect(await codeOf(a.renew(name))).toBe("E_FENCING_MISMATCH");
  });

  it("may be damaged in any file and still every lease is there", async () => {
    for (const seed of range(60)) {
      const world = quietWorld(seed);
      const random = world.random("damage");
      const a = enter(world, "human:a");
      await a.acquire("resource:evicted");
      await a.session.evict([byKey("resource:evicted")], { reason: "so that there is an ending" });
      const keys = ["file:a/b", "file:a/c", "dir:d", "resource:r", "ref:refs/heads/x"];
      await a.acquire(keys);
      await a.acquire("scope:s", indefinite);
      const files = world.disk.paths().filter((path) => path.startsWith(`${INDEX}/`) && !path.endsWith("/"));
      const victim = random.pick(files);
      const bytes = world.disk.peek(victim)!.slice();
      const kind = random.below(6);
      if (kind === 0) bytes[random.below(bytes.length)]! ^= 1 << random.below(8);
      const content = [
        bytes,
        new Uint8Array(0),
        bytes.slice(0, random.below(bytes.length)),
        encode("{}"),
        new Uint8Array(bytes.length),
        // Whole, but something else.
        world.disk.peek(random.pick(files))!,
      ][kind]!;
      world.disk.install(victim, content);
      const b = enter(world, "agent:b");
      const story = `seed ${seed}: ${victim} damaged in way ${kind}`;
      expect((await b.coordinator.list()).length, story).toBe(6);
      for (const wanted of [...keys, "file:d/x", "dir:a", "dir:."])
        expect(await codeOf(b.acquire(wanted)), `${story}, ${wanted}`).toBe("E_LOCK_CONFLICT");
      await enter(world, "human:b").acquire("scope:t", indefinite);
      await tidy(a.store, a.logActor, { compact: true, flatIndex: {} });
    }
  });

  it("answers from the log when a rebuilt tree is damaged again at once", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("resource:one");
    const meta = `${INDEX}/resource/one/meta.json`;
    world.disk.install(meta, encode("rubbish"));
    // Every new file of the tree turns out damaged.
    const b = enter(world, "agent:b");
    const { files } = b.platform;
    const rename = files.rename.bind(files);
    files.rename = (from, to) => {
      rename(from, to);
      if (to === meta) world.disk.install(meta, encode("rubbish"));
    };
    await expect(b.coordinator.acquire(acquireRequest(b, "resource:one"))).rejects.toMatchObject({
      code: "E_LOCK_CONFLICT",
    });
    await b.acquire("resource:two");
  });
});
