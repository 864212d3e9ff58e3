import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Workspace } from "../../../src/coordinator/workspace";
import { orThrow } from "../../../src/errors/cotenant-error";
import { parseKey } from "../../../src/kernel/keys";
import { nodeGit } from "../../../src/platform/git-node";
import { thisMachine } from "../../../src/platform/node/this-machine";
import { tidy } from "../../../src/store/housekeeping";
import { LogCheck } from "../../../testing/checker/log-check";
import { GrowingFile, LogFiles } from "../../../testing/checker/log-files";
import { Verdict } from "../../../testing/checker/verdict";
import { readTestimony } from "../../../testing/checker/witness";
import type { Operation } from "./history";
import { loseIndex, type Place } from "./place";

export interface Aftermath {
  readonly log: LogCheck;
  readonly segments: number;
  readonly violations: readonly string[];
}

/**
 * What a run has left, when everybody has gone: the log is whole and has everything that anybody was told, the index
 * says the same, guarded writes were made under leases that stood, and the store works for whoever comes next.
 */
export async function inspect(place: Place, operations: readonly Operation[]): Promise<Aftermath> {
  const verdict = new Verdict();
  const attempt = async (what: string, act: () => Promise<void>) => {
    await act().catch((error: unknown) => verdict.fail(what, String((error as Error)?.stack ?? error)));
  };
  await attempt("the store works", () => checkStore(place, verdict));
  const log = new LogCheck(verdict);
  const files = new LogFiles(place.control);
  for (const line of files.read()) log.take(line);
  checkAcknowledged(operations, log, verdict);
  checkWitnesses(place, log, verdict);
  await attempt("the store can be read", () => checkIndex(place, log, verdict));
  await attempt("the store can be tidied", () => checkTidied(place, verdict));
  return { log, segments: files.segments, violations: verdict.violations };
}

/** Promise 4. */
function checkAcknowledged(operations: readonly Operation[], log: LogCheck, verdict: Verdict): void {
  for (const { ask, answer } of operations) {
    if (answer.is !== "done" || ask.do === "write") continue;
    for (const { id, key, token } of answer.leases) {
      const known = log.byId.get(id);
      const isThere = known !== undefined && known.token === token;
      verdict.expect("what was told is in the log", isThere, () => `${ask.do} ${key} #${token}`);
      if (ask.do !== "release" || known === undefined) continue;
      verdict.expect(
        "what was released is released",
        known.how === "released",
        () => `${key} #${token}: ${known.how}`,
      );
    }
  }
}

/** Promise 3: each write says under which token it was made, and how far the log had come. */
function checkWitnesses({ witness }: Place, log: LogCheck, verdict: Verdict): void {
  for (const name of readdirSync(witness)) {
    for (const line of new GrowingFile().read(join(witness, name))) {
      const said = readTestimony(line);
      if (!verdict.expect("witness lines are whole", said !== null, () => `${name}: ${line}`)) continue;
      const { token, sequence, atMs } = said!;
      const lease = log.byToken.get(token);
      const stood =
        lease !== undefined &&
        lease.grantedAt <= sequence &&
        (lease.endedAt === null || sequence < lease.endedAt) &&
        atMs < lease.expiresAtMs;
      verdict.expect("no write with a stale token", stood, () => `${name} #${token} at line ${sequence}`);
    }
  }
}

/** Promise 5, of whole leases: through the index, and without it. */
async function checkIndex(place: Place, log: LogCheck, verdict: Verdict): Promise<void> {
  const picture = async () => {
    const { leases } = await (await openPlace(place)).coordinator.snapshot();
    return JSON.stringify([...leases.values()].sort((a, b) => a.fencingToken - b.fencingToken));
  };
  const withIndex = await picture();
  loseIndex(place, true);
  const without = await picture();
  verdict.expect(
    "the index says what the log says",
    withIndex === without,
    () => `${withIndex}\nand ${without}`,
  );
  const ids = (JSON.parse(without) as { leaseId: string }[]).map(({ leaseId }) => leaseId);
  const isSame = ids.length === log.open.size && ids.every((id) => log.open.has(id));
  verdict.expect(
    "readers see what the log says",
    isSame,
    () => `${ids.length} leases, ${log.open.size} in the log`,
  );
}

/** Promise 6, and that nothing is in the way of whoever comes next. */
async function checkStore(place: Place, verdict: Verdict): Promise<void> {
  const workspace = await openPlace(place);
  const session = await workspace.session("write");
  const key = orThrow(parseKey("resource:afterwards"));
  await session.acquire([{ key, reach: "repository" }], { ttlSecs: 600 });
  const waiters = await workspace.coordinator.waiters();
  verdict.expect(
    "no ticket is left of those who have gone",
    waiters.length === 0,
    () => `${waiters.length} tickets`,
  );
  const statuses = await workspace.coordinator.list({ lapsed: true });
  for (const { lease, standing } of statuses.filter((one) => one.lease.bind === "process"))
    verdict.expect("the dead hold nothing", standing === "dead", () => `${lease.key} is ${standing}`);
  await session.release([{ key, leaseId: null }]);
  const tickets = readdirSync(join(place.control, "queue")).filter((name) => name.endsWith(".json"));
  verdict.expect("the queue is swept", tickets.length === 0, () => tickets.join(" "));
  verdict.expect(
    "nobody was left in a rename",
    !readdirSync(join(place.control, "locks")).includes("renaming"),
    () => "locks/renaming",
  );
}

/** Last of all: it packs the archive. */
async function checkTidied(place: Place, verdict: Verdict): Promise<void> {
  const { store, surroundings } = await openPlace(place);
  const { processes } = surroundings.platform;
  const who = { agentId: "agent:afterwards", sessionId: "main", worktreeId: "", host: processes.host() };
  await tidy(store, { ...who, pid: processes.self().pid }, { compact: false, flatIndex: {} });
  const left = readdirSync(join(place.control, "queue"));
  verdict.expect("nothing unfinished is left in the queue", left.length === 0, () => left.join(" "));
}

async function openPlace({ env, worktrees }: Place): Promise<Workspace> {
  const surroundings = {
    ...thisMachine(),
    env,
    git: nodeGit(env),
    cwd: worktrees[0]!,
    home: env["HOME"] ?? null,
  };
  return Workspace.open(
    { ...surroundings, isTerminal: false },
    { agentId: "agent:afterwards", session: "main" },
  );
}
