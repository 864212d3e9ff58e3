import { expect, it } from "vitest";
import { recordEscalated } from "../../src/coordinator/escalation";
import type { Escalated } from "../../src/kernel/escalation";
import { enter, logLines, quietWorld, range } from "../store/stage";

it("is one line, however many notice at the same time", async () => {
  const world = quietWorld();
  const holder = enter(world, "agent:a");
  await holder.acquire("file:x");
  const [status] = await holder.coordinator.list();
  const { lease } = status!;
  const others = range(6).map((i) => enter(world, `agent:n${i}`));
  const noticed = others.map(({ actor }): Escalated => {
    const contender = { agentId: actor.agentId, since: lease.acquiredAt, leaseIds: [lease.leaseId] };
    return { lease, contenders: [contender] };
  });
  await Promise.all(
    others.map(({ coordinator, actor }, i) => recordEscalated(coordinator, actor, [noticed[i]!])),
  );
  await recordEscalated(holder.coordinator, holder.actor, noticed.slice(0, 1));
  const lines = logLines(world).filter((line) => line?.["event_type"] === "lease.escalated");
  expect(lines).toHaveLength(1);
});
