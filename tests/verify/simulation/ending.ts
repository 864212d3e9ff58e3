import type { LeaseRef } from "../../../src/kernel/commands";
import { recover } from "../../../src/store/recover";
import type { SimProcess } from "../../../testing/simulator";
import { CONTROL, openParty, type Party } from "../../store/stage";
import { KEYS } from "./generate";
import type { Player } from "./player";
import type { Deed, Lane } from "./story";

const LANE: Lane = { process: -1, agent: "admin:last", session: "default", worktree: "wt:00000009" };
const ALONE = 3;
/** A wall clock that was set back must not keep what has lapsed alive. */
const DAYS_MS = 4 * 86_400_000;
/**
 * Past every TTL that a story knows, past the half hour of those that cannot be seen, and until what has no end is stale. In
 * days: who takes over the lease of another clock, whose wall clock was ahead, counts what it had left on its own, up to its
 * whole lifetime.
 */
const LONG_MS = DAYS_MS;

/**
 * Liveness, and what is left on the disk: once the troubles are over and everything has lapsed, somebody else can take
 * everything at once; readers see what the log says, with the index and without; and the disk has it all.
 */
export async function lastWords(player: Player): Promise<void> {
  const { world, auditor } = player;
  const before = auditor.chronicle.now;
  world.jumpWallClock(DAYS_MS);
  auditor.chronicle.noteJump(before);
  const process: SimProcess = world.spawn("last", (platform) =>
    takeEverything(player, process, openLast(platform)),
  );
  auditor.enter(process);
  await run(player);
  for (const how of ["with the index", "without the index"]) {
    if (auditor.broken.length > 0) return;
    if (how === "without the index") world.disk.spoil(`${CONTROL}/index/applied`, new Uint8Array(0));
    const reader = world.spawn(`reader ${how}`, (platform) => openLast(platform).coordinator.snapshot());
    await run(player);
    if (reader.result === undefined) return auditor.fail(0, `liveness: a reader ${how} has no answer`);
    auditor.checkView(`a reader ${how}`, reader.result.leases.values());
  }
  auditor.checkAcknowledged();
  auditor.checkFailed();
  auditor.checkDisk();
}

const openLast = (platform: Parameters<typeof openParty>[0]) =>
  openParty(platform, LANE.agent, { worktree: LANE.worktree });

async function takeEverything(player: Player, process: SimProcess, party: Party): Promise<void> {
  const { auditor } = player;
  const asDeed = async (deed: Omit<Deed, "id" | "lane">, act: () => Promise<void>) => {
    const call = auditor.begin(LANE, { id: 0, lane: -1, ...deed } as Deed, process, true);
    await act();
    if (call.ended === null) auditor.end(call);
  };
  // A disk that was full may owe one more refusal.
  await asDeed({ do: "recover" }, async () => {
    const again = () => recover(party.store, party.logActor);
    const report = await again().catch(again);
    if (report.recovered) player.count("log.recovered");
  });
  await party.platform.timers.sleep(LONG_MS).done;
  const refs: LeaseRef[] = (await party.coordinator.list()).map(({ lease: { key, leaseId } }) => ({
    key,
    leaseId,
  }));
  const evict = { do: "evict", key: "", requestId: false, again: false } as const;
  await asDeed(evict, async () => {
    if (refs.length > 0) await party.session.evict(refs, { reason: "the end" });
  });
  // A few alone first: nothing else that is asked for may help to find what stands in its way.
  const standing = [...(auditor.chronicle.last?.view.keys() ?? [])].map((slot) => slot.split("\n")[0]!);
  const some = player.world
    .random("ending")
    .shuffle(["dir:.", ...new Set(standing)])
    .slice(0, ALONE);
  for (const one of some) await take(player, process, party, [one]);
  await take(player, process, party, KEYS);
  auditor.left(process);
}

async function take(
  player: Player,
  process: SimProcess,
  party: Party,
  names: readonly string[],
): Promise<void> {
  const { auditor } = player;
  const keys = names.map((key) => ({ key, reach: "repository" as const }));
  const all = {
    ttlSecs: 600,
    bind: "ttl",
    steal: false,
    waitMs: 20_000,
    requestId: false,
    again: false,
  } as const;
  const deed = { id: 0, lane: -1, do: "acquire", keys, ...all } as const;
  const call = auditor.begin(LANE, deed, process, true);
  auditor.granted(call, await party.acquire(keys, { wait: { timeoutMs: 20_000 } }));
}

async function run({ world, auditor }: Player): Promise<void> {
  const { reason } = await world.run({ maxSteps: 60_000, until: () => auditor.broken.length > 0 });
  if (reason !== "finished" && auditor.broken.length === 0)
    auditor.fail(0, `liveness: the end does not end (${reason})`);
}
