import { beforeEach, describe, expect, it } from "vitest";
import type { AgentId, Ulid } from "../../src/kernel/ids";
import type { Lease } from "../../src/kernel/lease";
import {
  missingApprovals,
  type Proposal,
  proposalFrom,
  proposalName,
  proposalToFact,
  subjectOf,
} from "../../src/kernel/proposals";
import { instantOf } from "../../src/kernel/time";
import { byId, granted, ISSUE, one, refused, Scene, written } from "./scene";

const ID = "01ARZ3NDEKTSV4RRFFQ69G5FAW" as Ulid;
let scene: Scene;
let lease: Lease;
beforeEach(() => {
  scene = new Scene();
  scene.policy = { ...scene.policy, approvers: 1 };
  lease = one(scene.acquire(scene.actor("agent:a"), ISSUE));
});

function proposal(approvedBy: readonly string[], more: Partial<Proposal> = {}): Proposal {
  return {
    id: ID,
    subject: subjectOf(lease),
    proposedBy: "human:ada" as AgentId,
    proposedAt: instantOf(scene.now),
    reason: "its machine is gone",
    approvedBy: approvedBy as AgentId[],
    ...more,
  };
}
const say = (made: Proposal) => scene.say(proposalName(ID), proposalToFact(made));
const evict = (who = "human:bob") =>
  scene.run({
    kind: "evict",
    actor: scene.actor(who),
    leases: [byId(lease)],
    reason: "its machine is gone",
    proposalId: ID,
  });

describe("with policy.approvers, a live lease of somebody else", () => {
  it("is neither ended, nor stolen, nor handed over by one alone", () => {
    const ada = scene.actor("human:ada");
    expect(scene.evict(ada, byId(lease))).toMatchObject({
      code: "E_APPROVAL_NEEDED",
      hint: expect.stringContaining("cotenant claim force-evict"),
      data: { leases: [{ lease_id: lease.leaseId, fencing_token: 1, agent_id: "agent:a" }], approvers: 1 },
    });
    expect(refused(scene.acquire(ada, ISSUE, { steal: true, reason: "r" }))).toBe("E_APPROVAL_NEEDED");
    expect(refused(scene.transfer(ada, byId(lease), ada))).toBe("E_APPROVAL_NEEDED");
    expect(refused(scene.evict(scene.actor("agent:b"), byId(lease)))).toBe("E_POLICY");
  });

  it("is ended once another agrees, by an event that names all, and the proposal is used up", () => {
    say(proposal(["human:bob"]));
    const outcome = evict();
    granted(outcome);
    expect(written(outcome)).toMatchObject({
      type: "claim.evicted",
      reason: "its machine is gone",
      approval: { proposalId: ID, proposedBy: "human:ada", approvedBy: ["human:bob"] },
    });
    expect("facts" in outcome && [...outcome.facts!]).toEqual([[proposalName(ID), null]]);
  });

  it.each([
    ["nobody", []],
    ["the proposer", ["human:ada"]],
    ["another name of the proposer's", ["admin:ada"]],
    ["somebody who may not evict", ["agent:b"]],
  ])("is not ended by the word of %s", (_, approvedBy) => {
    say(proposal(approvedBy));
    expect(refused(evict())).toBe("E_APPROVAL_NEEDED");
  });

  it("needs as many as the policy says now, each person once", () => {
    scene.policy = { ...scene.policy, approvers: 2 };
    say(proposal(["human:bob", "admin:bob"]));
    expect(refused(evict())).toBe("E_APPROVAL_NEEDED");
    expect(missingApprovals(proposal(["human:bob", "admin:bob"]), scene.policy)).toBe(1);
    say(proposal(["human:bob", "human:eve"]));
    granted(evict());
  });

  it("not by a proposal that is older than an hour, nor of somebody who may not evict any more", () => {
    say(proposal(["human:bob"]));
    granted(scene.renew(scene.actor("agent:a"), byId(lease), { ttlSecs: 7200 }));
    scene.advance(3_600);
    expect(refused(evict())).toBe("E_APPROVAL_NEEDED");
    say(proposal(["human:bob"]));
    scene.policy = { ...scene.policy, evict: ["human:bob", "human:eve"] };
    expect(refused(evict())).toBe("E_APPROVAL_NEEDED");
  });

  it("not by a proposal about another lease on the same key", () => {
    const made = proposal(["human:bob"]);
    say(made);
    granted(scene.release(scene.actor("agent:a"), byId(lease)));
    lease = one(scene.acquire(scene.actor("agent:c"), ISSUE));
    expect(refused(evict())).toBe("E_APPROVAL_NEEDED");
    say({ ...made, subject: { ...made.subject, leaseId: lease.leaseId } });
    expect(refused(evict())).toBe("E_APPROVAL_NEEDED");
  });

  it("needs nobody's word once it has lapsed, nor for what is one's own", () => {
    const own = one(scene.acquire(scene.actor("human:ada", "one"), "file:x"));
    granted(scene.evict(scene.actor("human:ada", "two"), byId(own)));
    scene.advance(601);
    granted(scene.evict(scene.actor("agent:b"), byId(lease)));
  });

  it("is not ended by a record that cannot be read", () => {
    for (const fact of [{}, { ...proposalToFact(proposal(["human:bob"])), proposed_at: "long ago" }]) {
      scene.say(proposalName(ID), fact);
      expect(proposalFrom(fact)).toBeNull();
      expect(refused(evict())).toBe("E_APPROVAL_NEEDED");
    }
    const made = proposal(["human:bob"]);
    expect(proposalFrom(JSON.parse(JSON.stringify(proposalToFact(made))))).toEqual(made);
  });
});
