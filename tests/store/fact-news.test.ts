import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { stampName } from "../../src/features/issues/stamps";
import { Scene } from "../issues/scene";

/** Stamps of issues are the facts at hand. */
async function news(scene: Scene, position: string | null) {
  const { workspace } = await scene.open();
  return workspace.coordinator.factsSince("stamp", position);
}

describe("facts since a position", () => {
  it("are those that were said since, and all of them where that cannot be told", async () => {
    const scene = new Scene();
    const nothing = await news(scene, null);
    expect(nothing).toMatchObject({ isAll: true, facts: new Map() });
    const [first, second] = [scene.make(), scene.make()];
    await scene.update(first.id, scene.main, "agent:a", { state: "done" });
    const one = await news(scene, null);
    expect([...one.facts.keys()]).toEqual([stampName(first.id)]);
    expect(one).toMatchObject({ isAll: true, position: expect.any(String) });

    expect(await news(scene, one.position)).toMatchObject({ isAll: false, facts: new Map(), lines: 0 });
    await scene.update(second.id, scene.main, "agent:a", { state: "done" });
    const two = await news(scene, one.position);
    expect(two.isAll).toBe(false);
    expect([...two.facts.keys()]).toEqual([stampName(second.id)]);
    expect(two.lines).toBeGreaterThan(0);
    expect((await news(scene, two.position)).facts.size).toBe(0);

    // A new segment: nothing of the old one's places means anything in it.
    const { workspace } = await scene.open();
    const session = await workspace.session("write");
    const log = path.join(scene.main, ".git/cotenant/claims.jsonl");
    const before = fs.readFileSync(log);
    fs.writeFileSync(`${log}.copy`, before);
    fs.renameSync(`${log}.copy`, log);
    expect(await news(scene, two.position)).toMatchObject({ isAll: true });
    expect((await news(scene, two.position)).facts.size).toBe(2);
    expect(session.actor.agentId).toBe("agent:a");
  });

  it("are not taken from a log that was cut off and has grown again", async () => {
    const scene = new Scene();
    const [first, second, third] = [scene.make(), scene.make(), scene.make()];
    await scene.update(first.id, scene.main, "agent:a", { state: "done" });
    await scene.update(second.id, scene.main, "agent:a", { state: "done" });
    const { position } = await news(scene, null);
    const known = JSON.parse(position!) as { head: { offset: number; sum: string } };
    const other = { ...known, head: { ...known.head, sum: known.head.sum.replace(/./g, "0") } };
    await scene.update(third.id, scene.main, "agent:a", { state: "done" });
    // The same place in the file, and another past before it.
    expect(await news(scene, JSON.stringify(other))).toMatchObject({ isAll: true });
    expect(await news(scene, position)).toMatchObject({ isAll: false });
    expect(await news(scene, JSON.stringify({ ...known, boot: "another" }))).toMatchObject({ isAll: true });
  });

  it("leases of one kind are listed without the others", async () => {
    const scene = new Scene();
    const issue = scene.make();
    await scene.claim(issue.id, scene.main, "agent:a");
    const { workspace } = await scene.open();
    const session = await workspace.session("write");
    await session.acquire([{ key: "resource:port" as never, reach: "repository" }], { ttlSecs: 60 });
    const keys = async (kinds: readonly ("issue" | "resource" | "ref")[]) =>
      (await workspace.coordinator.list({ kinds })).map(({ lease }) => lease.key as string);
    expect(await keys(["issue"])).toEqual([`issue:${issue.id}`]);
    expect(await keys(["resource"])).toEqual(["resource:port"]);
    expect((await keys(["issue", "resource", "ref"])).sort()).toEqual([`issue:${issue.id}`, "resource:port"]);
  });
});
