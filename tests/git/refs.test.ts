import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { NewRef } from "../../src/git/new-ref";
import { RefMoved, RefWriter, readRef } from "../../src/git/refs";
import { until } from "../support/program";
import { git, platform, Scene } from "./scene";

const writerFor = ({ place }: Scene) => new RefWriter(platform, git, place, "test: move");
const read = ({ place }: Scene, ref: string) => readRef(platform, git, place, ref);

describe("reading a ref", () => {
  it("finds it loose, packed, symbolic, or not at all", async () => {
    const scene = new Scene();
    const oid = scene.commit();
    scene.git("branch", "topic/a");
    scene.git("symbolic-ref", "refs/heads/alias", "refs/heads/topic/a");
    expect(await read(scene, "refs/heads/topic/a")).toEqual({ oid });
    expect(await read(scene, "refs/heads/alias")).toEqual({ target: "refs/heads/topic/a" });
    scene.git("pack-refs", "--all", "--prune");
    expect(fs.existsSync(path.join(scene.root, ".git/refs/heads/topic/a"))).toBe(false);
    expect(await read(scene, "refs/heads/topic/a")).toEqual({ oid });
    expect(await read(scene, "refs/heads/topic")).toBe(null);
    expect(await read(scene, "refs/heads/none")).toBe(null);
  });

  it("does not take a damaged one for none", async () => {
    const scene = new Scene();
    scene.commit();
    fs.writeFileSync(path.join(scene.root, ".git/refs/heads/torn"), "");
    await expect(read(scene, "refs/heads/torn")).rejects.toThrow(/refs\/heads\/torn is damaged/);
  });

  it("asks Git where refs are no files", async () => {
    const scene = new Scene();
    const oid = scene.commit();
    scene.git("branch", "topic/a");
    scene.git("symbolic-ref", "refs/heads/alias", "refs/heads/topic/a");
    const place = { ...scene.place, config: { objectFormat: "sha1", refFormat: "reftable" } } as const;
    expect(await readRef(platform, git, place, "refs/heads/topic/a")).toEqual({ oid });
    expect(await readRef(platform, git, place, "refs/heads/alias")).toEqual({ target: "refs/heads/topic/a" });
    expect(await readRef(platform, git, place, "refs/heads/none")).toBe(null);
  });
});

describe.each(["sha1", "sha256"] as const)("changing a ref of a %s repository", (format) => {
  it("creates, moves, and gives up, by one Git", async () => {
    const scene = new Scene(format);
    const [one, two] = [scene.commit("one"), scene.commit("two")];
    const writer = writerFor(scene);
    const identity = await writer.start([]);
    expect(platform.processes.liveness(identity!)).toBe("alive");
    await writer.prepare([{ ref: "refs/heads/topic/new", next: one, previous: null }]);
    expect(fs.readFileSync(path.join(scene.root, ".git/refs/heads/topic/new.lock"), "utf8").trim()).toBe(one);
    expect(await writer.commit()).toBe(true);
    await writer.sync(["refs/heads/topic/new"]);
    await writer.prepare([{ ref: "refs/heads/topic/new", next: two, previous: one }]);
    await writer.abort();
    expect(await read(scene, "refs/heads/topic/new")).toEqual({ oid: one });
    await writer.prepare([{ ref: "refs/heads/topic/new", next: two, previous: one }]);
    await writer.close();
    expect(await read(scene, "refs/heads/topic/new")).toEqual({ oid: one });
    expect(fs.existsSync(path.join(scene.root, ".git/refs/heads/topic/new.lock"))).toBe(false);
    expect(scene.git("reflog", "topic/new", "--format=%gs")).toBe("test: move");
  });
});

describe("changing a ref", () => {
  it.each([
    ["moved", "two", "one"],
    ["there already", "two", null],
    ["gone", null, "one"],
  ])("that is %s is refused as such", async (_, now, expected) => {
    const scene = new Scene();
    const ids: Record<string, string> = { one: scene.commit("one"), two: scene.commit("two") };
    if (now !== null) scene.git("branch", "x", ids[now]!);
    const writer = writerFor(scene);
    await writer.start([]);
    const update = {
      ref: "refs/heads/x",
      next: ids["two"]!,
      previous: expected === null ? null : ids[expected]!,
    };
    const refused = await writer.prepare([update]).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(RefMoved);
    expect((refused as RefMoved).isBusy).toBe(false);
    expect(writer.isRunning).toBe(false);
    await writer.close();
  });

  it("that somebody else has locked is refused as busy", async () => {
    const scene = new Scene();
    const oid = scene.commit();
    fs.writeFileSync(path.join(scene.root, ".git/refs/heads/x.lock"), "");
    const writer = writerFor(scene);
    await writer.start([]);
    const refused = await writer
      .prepare([{ ref: "refs/heads/x", next: oid, previous: null }])
      .catch((error: unknown) => error);
    expect((refused as RefMoved).isBusy).toBe(true);
  });

  it("never follows a symbolic ref to another one", async () => {
    const scene = new Scene();
    const [one, two] = [scene.commit("one"), scene.commit("two")];
    scene.git("symbolic-ref", "refs/heads/alias", "refs/heads/main");
    const writer = writerFor(scene);
    await writer.start([]);
    await writer.prepare([{ ref: "refs/heads/alias", next: one, previous: two }]).catch(() => {});
    await writer.commit().catch(() => {});
    expect(await read(scene, "refs/heads/main")).toEqual({ oid: two });
    await writer.close();
  });

  it("runs no hook of the repository", async () => {
    const scene = new Scene();
    const oid = scene.commit();
    const witness = path.join(scene.root, "hook-ran");
    fs.writeFileSync(
      path.join(scene.root, ".git/hooks/reference-transaction"),
      `#!/bin/sh\ntouch ${witness}\n`,
      {
        mode: 0o755,
      },
    );
    const writer = writerFor(scene);
    await writer.start([]);
    await writer.prepare([{ ref: "refs/heads/x", next: oid, previous: null }]);
    expect(await writer.commit()).toBe(true);
    await writer.close();
    expect(fs.existsSync(witness)).toBe(false);
  });

  /** PROTOCOL 3: the lock lives as long as anyone who can still write under it. */
  it("keeps a lock that its Git inherited, until Git has ended too", async () => {
    const scene = new Scene();
    const file = path.join(scene.root, "lock");
    fs.writeFileSync(file, "");
    const fd = platform.files.open(file, "update") as number;
    expect(platform.locks.tryLock(fd)).toBe(true);
    const writer = writerFor(scene);
    const identity = (await writer.start([fd]))!;
    // As if this process died: its own descriptor goes, the child's stays.
    fs.closeSync(fd);
    const other = platform.files.open(file, "update") as number;
    expect(platform.locks.tryLock(other)).toBe(false);
    await writer.close();
    await until("its Git has gone", () => platform.processes.liveness(identity) === "dead");
    expect(platform.locks.tryLock(other)).toBe(true);
    fs.closeSync(other);
  });
});

describe.each(["sha1", "sha256"] as const)("a new ref of a %s repository, without Git", (format) => {
  const REF = "refs/cotenant/snapshots/01";
  const at = (scene: Scene, name: string) => path.join(scene.root, ".git", name);
  const newRef = (scene: Scene) => new NewRef(platform, { ...scene.place, aside: at(scene, "aside") }, REF);

  it("is as Git would have made it, once it appears", async () => {
    const scene = new Scene(format);
    const oid = scene.commit("one");
    const ref = newRef(scene);
    await ref.stage(oid);
    expect(await read(scene, REF), "not before it appears").toBe(null);
    expect(await ref.appear(git)).toBe(true);
    expect(scene.git("rev-parse", REF).trim()).toBe(oid);
    scene.git("update-ref", "refs/cotenant/snapshots/02", oid);
    const [ours, gits] = ["01", "02"].map((name) =>
      fs.statSync(at(scene, `refs/cotenant/snapshots/${name}`)),
    );
    expect([ours!.size, ours!.mode]).toEqual([gits!.size, gits!.mode]);
    expect(fs.existsSync(at(scene, "aside"))).toBe(false);
    scene.git("pack-refs", "--all", "--prune");
    expect(await read(scene, REF)).toEqual({ oid });
    scene.git("fsck", "--strict");
  });

  it("is left to Git where the name is taken, loose or packed, or something else is in the way", async () => {
    const scene = new Scene(format);
    const [one, two] = [scene.commit("one"), scene.commit("two")];
    const refused = async () => {
      const ref = newRef(scene);
      await ref.stage(two);
      expect(await ref.appear(git)).toBe(false);
      expect(fs.existsSync(at(scene, "aside"))).toBe(false);
    };
    scene.git("update-ref", REF, one);
    await refused();
    scene.git("pack-refs", "--all", "--prune");
    await refused();
    expect(await read(scene, REF)).toEqual({ oid: one });
    scene.git("update-ref", "-d", REF);
    scene.git("update-ref", "refs/cotenant/snapshots", one);
    await refused();
    expect(scene.git("rev-parse", "refs/cotenant/snapshots").trim()).toBe(one);
  });
});
