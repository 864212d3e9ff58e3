import { describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { PROGRAM, run } from "../support/program";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

describe("several agents with --wait", () => {
  it("are all served, one after the other, with rising tokens", async () => {
    const repo = TestRepo.make();
    const agents = Array.from({ length: 8 }, (_, i) => `agent:w${i}`);
    const script =
      '"$PROGRAM" lock acquire a.ts b.ts --wait --timeout 25 && "$PROGRAM" lock release a.ts b.ts';
    const ended = await Promise.all(
      agents.map((agent) =>
        run(["/bin/sh", "-c", script], { cwd: repo.root, env: { PROGRAM, COTENANT_AGENT_ID: agent } }),
      ),
    );
    for (const ran of ended) expect(ran.status, `${ran}`).toBe(0);

    const lines = repo.logOf("file:a.ts");
    expect(lines.map((line) => line.event_type)).toEqual(
      agents.flatMap(() => ["claim.acquired", "claim.released"]),
    );
    for (let i = 0; i < lines.length; i += 2)
      expect(lines[i]!.actor.agent_id).toBe(lines[i + 1]!.actor.agent_id);
    const tokens = lines.flatMap((line) => line.payload.leases.map(({ fencing_token }) => fencing_token));
    expect(tokens).toEqual(Array.from({ length: 16 }, (_, i) => i + 1));
    expect(new Set(lines.map((line) => line.actor.agent_id))).toEqual(new Set(agents));
  });

  it("work on crossing sets of keys without a deadlock", async () => {
    const repo = TestRepo.make();
    const wishes = [
      ["a.ts", "b.ts"],
      ["b.ts", "c.ts"],
      ["c.ts", "a.ts"],
      ["--dir", "."],
    ];
    const script = '"$PROGRAM" lock acquire "$@" --wait --timeout 25 && "$PROGRAM" lock release "$@"';
    const ended = await Promise.all(
      [...wishes, ...wishes].map((wish, i) =>
        run(["/bin/sh", "-c", script, "sh", ...wish], {
          cwd: repo.root,
          env: { PROGRAM, COTENANT_AGENT_ID: `agent:w${i}` },
        }),
      ),
    );
    for (const ran of ended) expect(ran.status, `${ran}`).toBe(0);
    expect((await repo.ask("", "status")).data.leases).toEqual([]);
  });
});
