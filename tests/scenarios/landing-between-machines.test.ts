import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { beforeEach, describe, expect } from "vitest";
import { landingRightId } from "../../src/kernel/landing-right";
import type { Hub } from "../support/hub";
import { branchWith } from "../support/landing";
import { clockOff, Machine, sharedIssues } from "../support/machines";
import { oneIn } from "../support/one-in";
import { expectJsonRefused } from "../support/refusals";

const it = oneIn(5);

const RIGHT = landingRightId(createHash("sha256").update("refs/heads/main").digest("hex"));

describe("S88: the landing right between machines", () => {
  let hub: Hub;
  let first: Machine;
  let second: Machine;

  beforeEach(async () => {
    const shared = await sharedIssues(1);
    [hub, first] = [shared.hub, shared.first];
    second = Machine.clone(hub, "second");
    for (const machine of [first, second]) {
      branchWith(machine.repo, `work/${machine.name}`, { [`${machine.name}.txt`]: "work\n" });
      await machine.prepare("land", "add", `work/${machine.name}`);
    }
  });

  const by = (machine: Machine) => ({ COTENANT_AGENT_ID: `human:${machine.name}` });
  const run = (machine: Machine, ...more: string[]) =>
    machine.askWith(by(machine), "land", "run", "--push", ...more);

  async function untilClaimed(): Promise<void> {
    const ref = `refs/cotenant/claims/${RIGHT}`;
    while (hub.refs("refs/cotenant/claims/")[ref] === undefined)
      await new Promise((resolve) => setTimeout(resolve, 50));
  }

  /** A lander whose check goes on until it is told. */
  function slowly(machine: Machine) {
    const go = `${hub.room}/go-${machine.name}`;
    const check = `while [ ! -e ${go} ]; do sleep 0.1; done`;
    const running = machine.start(["land", "run", "--push", "--json"], {
      ...by(machine),
      COTENANT_LAND_CHECKS: check,
    });
    return { running, go: () => fs.writeFileSync(go, "") };
  }

  it("one lands at a time, each on what the other has landed", async () => {
    const [one, other] = await Promise.all([run(first, "--wait"), run(second, "--wait")]);
    for (const ran of [one, other]) expect(ran.data, String(ran)).toMatchObject({ landed: 1, waiting: 0 });
    const subjects = hub.git("log", "--first-parent", "--format=%s", "main").trim().split("\n");
    expect(subjects.slice(0, 2).sort()).toEqual([
      "Merge branch 'work/first' into main",
      "Merge branch 'work/second' into main",
    ]);
    expect(hub.git("ls-tree", "--name-only", "main")).toMatch(/first\.txt[\s\S]*second\.txt/);
    expect(hub.claim(RIGHT)).toMatchObject({ status: "released" });
    expect(hub.subjects(RIGHT).filter((subject) => subject.startsWith("Publish under"))).toHaveLength(2);
  }, 120_000);

  it("while another machine has it, nobody else lands, and is told who", async () => {
    const { running, go } = slowly(first);
    await untilClaimed();
    const ran = await run(second);
    expectJsonRefused(ran, 1, "E_LOCK_CONFLICT");
    expect(ran.error.message).toContain("the landing right of main");
    expect(ran.error.message).toContain("human:first");
    expect(ran.error.message).not.toContain(RIGHT);
    // It is nobody's issue, and is not shown as one.
    expect((await first.askHere("claim", "list")).data.leases).toEqual([]);
    for (const words of ["status", "lock status", "events"]) {
      const shown = await first.runHere(...words.split(" "));
      expect(shown.stdout).toContain("the landing right");
      expect(shown.stdout).not.toContain(RIGHT);
    }
    go();
    expect((await running.done).data).toMatchObject({ landed: 1 });
    expect((await run(second)).data).toMatchObject({ landed: 1 });
  }, 120_000);

  it("a lander that slept past its right is refused whole", async () => {
    // Its check is the sleep: meanwhile another machine, whose clock has moved on, takes the right and lands.
    const { running, go } = slowly(first);
    await untilClaimed();
    const taken = await second.askWith({ ...clockOff("+2h"), ...by(second) }, "land", "run", "--push");
    expect(taken.data, String(taken)).toMatchObject({ landed: 1 });
    const tip = hub.head("main");
    go();
    const ran = await running.done;
    expectJsonRefused(ran, 8, "E_FENCING_MISMATCH");
    expect(hub.head("main")).toBe(tip);
    expect((await first.askHere("land", "list")).data["entries"]).toMatchObject([{ state: "queued" }]);
    expect((await run(first)).data).toMatchObject({ landed: 1 });
  }, 120_000);
});
