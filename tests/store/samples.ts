import type { AgentId, FencingToken, LeaseId, SessionId, WorktreeId } from "../../src/kernel/ids";
import type { LeaseKey } from "../../src/kernel/keys";
import type { Ended, Holder, Lease } from "../../src/kernel/lease";
import type { Instant } from "../../src/kernel/time";
import type { LogActor } from "../../src/store/envelope";

/** Leases and their like with every field fixed, for formats that must not change by accident. */

const MORNING = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

export function at(seconds: number): Instant {
  return {
    wallMs: MORNING + seconds * 1000,
    monotonicMs: 86_400_000 + seconds * 1000,
    clockId: "3b0c8a44-9f2e-4f0e-8a55-0d6e7f3c1b2a+4026531834",
  };
}

export const holder: Holder = {
  machineId: "0123456789abcdef0123456789abcdef",
  bootId: "3b0c8a44-9f2e-4f0e-8a55-0d6e7f3c1b2a",
  pidNamespace: "4026531836",
  timeNamespace: "4026531834",
  user: "1000",
  pid: 4242,
  startTime: "987654",
};

export const lease: Lease = {
  leaseId: "01KDVDNA00YW26MSR5DMWESBAC" as LeaseId,
  key: "file:src/ünïcode.ts" as LeaseKey,
  agentId: "agent:claude-1a2b3c4d" as AgentId,
  sessionId: "default" as SessionId,
  worktreeId: "wt:1a2b3c4d" as WorktreeId,
  branch: "refs/heads/topic/login",
  holder,
  ttlSecs: 600,
  acquiredAt: at(0),
  renewedAt: at(60),
  expiresAt: at(660),
  lastBeat: at(90),
  maxTotalSecs: 86_400,
  fencingToken: 17 as FencingToken,
  secretHash: "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b",
  reason: 'to say "no"',
  note: null,
  stopIdleAt: null,
  bind: "ttl",
  reach: "repository",
  stoleFrom: [],
};

/** Everything that the other one is not. */
export const otherLease: Lease = {
  ...lease,
  leaseId: "01KDVDNA01YW26MSR5DMWESBAD" as LeaseId,
  key: "dir:." as LeaseKey,
  branch: null,
  ttlSecs: 0,
  expiresAt: null,
  maxTotalSecs: null,
  fencingToken: 18 as FencingToken,
  secretHash: null,
  reason: null,
  note: "a note",
  stopIdleAt: at(120),
  bind: "process",
  reach: "worktree",
  stoleFrom: [
    { leaseId: "01KDVDNA02YW26MSR5DMWESBAE" as LeaseId, agentId: "human:ada" as AgentId, why: "expired" },
  ],
};

export const ended: Ended = {
  leaseId: lease.leaseId,
  key: lease.key,
  reach: "repository",
  worktreeId: lease.worktreeId,
  agentId: lease.agentId,
  fencingToken: lease.fencingToken,
  how: "forced",
  successor: otherLease.leaseId,
};

export const actor: LogActor = {
  agentId: lease.agentId,
  sessionId: lease.sessionId,
  worktreeId: lease.worktreeId,
  host: "host.example",
  pid: 4242,
};
