import type { Change } from "../../../src/coordinator/contract";
import type { LeaseRef } from "../../../src/kernel/commands";
import type { Ulid } from "../../../src/kernel/ids";
import { tidy } from "../../../src/store/housekeeping";
import { recover } from "../../../src/store/recover";
import { asked, byKey, history, key, type Party, sha256 } from "../../store/stage";
import type { Auditor } from "./auditor";
import type { Call } from "./call";
import type { Deed, Lane } from "./story";

export interface Doing {
  readonly auditor: Auditor;
  readonly party: Party;
  readonly lanes: readonly Lane[];
  /** Watches that were begun, to be closed when the process ends. */
  readonly watches: { close(): void }[];
  count(what: string): void;
}

/** Does what the story says, and tells the auditor what came of it. Answers the leases that were told of. */
export async function perform(
  doing: Doing,
  call: Call,
  deed: Deed,
  requestId: Ulid | null,
): Promise<Change | null> {
  const { auditor, party } = doing;
  const change = await changed(doing, deed, requestId);
  if (change !== null) {
    if (change.replayed) doing.count("request.replayed");
    auditor.granted(call, change);
    return change;
  }
  switch (deed.do) {
    case "snapshot":
      auditor.sawSnapshot(call, await party.coordinator.snapshot());
      break;
    case "list":
      auditor.sawList(call, await party.coordinator.list());
      break;
    case "history":
      auditor.sawHistory(call, await history(party));
      break;
    case "watch":
      await watch(doing);
      auditor.end(call);
      break;
    case "rest":
      await party.platform.timers.sleep(deed.ms).done;
      auditor.end(call);
      break;
    case "tidy":
      await tidy(party.store, party.logActor, { compact: deed.compact, flatIndex: {} });
      auditor.end(call);
      break;
    case "recover": {
      const report = await recover(party.store, party.logActor);
      if (report.recovered) doing.count("log.recovered");
      auditor.end(call);
      break;
    }
    default:
      throw new Error(`nobody knows how to ${deed.do}`);
  }
  return null;
}

async function changed(doing: Doing, deed: Deed, requestId: Ulid | null): Promise<Change | null> {
  const { session, coordinator, actor } = doing.party;
  const named = (name: string): LeaseRef => byKey(name);
  switch (deed.do) {
    case "acquire":
      return acquire(doing, deed, requestId);
    case "renew":
      return session.renew([named(deed.key)], {
        ttlSecs: deed.ttlSecs,
        overrideMax: false,
        reason: null,
        requestId,
      });
    case "heartbeat":
      return session.heartbeat([named(deed.key)], { requestId });
    case "release":
      return session.release(deed.keys.map(named), { requestId });
    case "transfer": {
      const { agent, worktree } = doing.lanes[deed.to]!;
      return session.transfer(named(deed.key), {
        toAgent: agent as never,
        toWorktree: worktree as never,
        toBranch: null,
        reason: "yours",
        requestId,
      });
    }
    case "evict":
      return session.evict([named(deed.key)], { reason: "enough", requestId });
    case "stop":
      return session.stop();
    case "gc":
      return coordinator.gc({ actor });
    case "pretend":
      return pretend(doing, deed.key);
    default:
      return null;
  }
}

async function acquire(
  { party, count }: Doing,
  deed: Extract<Deed, { do: "acquire" }>,
  requestId: Ulid | null,
): Promise<Change> {
  const grant = await party.session.acquire(asked(deed.keys), {
    ttlSecs: deed.ttlSecs,
    bind: deed.bind,
    steal: deed.steal,
    reason: deed.steal || deed.ttlSecs === 0 ? "it must be" : null,
    wait: deed.waitMs === null ? null : { timeoutMs: deed.waitMs, onWait: () => count("queue.waited") },
    requestId,
  });
  if (grant.ended.length > 0) count("takeover");
  if (grant.waitedMs > 0) count("queue.served");
  return grant;
}

/** Tries to give back somebody else's lease, which anybody can name, with a secret that is a guess. */
async function pretend({ party, auditor, count }: Doing, name: string): Promise<Change> {
  const standing = [...(auditor.chronicle.last?.view.values() ?? [])].find((lease) => lease.key === name);
  const { actor, coordinator } = party;
  const change = await coordinator.release({
    actor,
    leases: [{ key: key(name), leaseId: standing?.leaseId ?? null }],
    secrets: ["a guess"],
    secretHash: sha256("another guess"),
    requestId: null,
    reason: null,
  });
  if (standing !== undefined && standing.secretHash !== null)
    auditor.fail(3, `${actor.agentId} has released ${name} with a guess`);
  else count("pretend.adopted");
  return change;
}

async function watch({ party, auditor, watches }: Doing): Promise<void> {
  const events: Parameters<Auditor["sawEvents"]>[0][number][] = [];
  const subscription = await party.coordinator.watch((event) => events.push(event));
  watches.push({
    close: () => {
      subscription.close();
      auditor.sawEvents(events);
    },
  });
}
