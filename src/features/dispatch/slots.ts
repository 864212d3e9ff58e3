import type { Session } from "../../coordinator/session";
import { surroundingsIn, Workspace } from "../../coordinator/workspace";
import { CotenantError, orThrow, policyError } from "../../errors/cotenant-error";
import { AGENT_VARIABLE, SESSION_VARIABLE } from "../../identity/agent";
import { harnessVariables } from "../../identity/harness";
import { parentOf } from "../../identity/path-text";
import type { Environment } from "../../identity/repository";
import { listWorktrees, type WorktreeEntry } from "../../identity/worktree-list";
import { type AgentId, parseAgentId, parseSessionId, printable } from "../../kernel/ids";
import type { CommandEnd } from "../../platform/commands";
import type { Descriptor, Platform, ProcessIdentity } from "../../platform/platform";
import { modesFor } from "../../store/layout";
import { SessionSecrets } from "../../store/secrets";
import { carryAgents } from "../harnesses/carried-settings";
import { installAgents, projectLevel } from "../harnesses/installation";
import { makeWorktree } from "../worktrees/construction";
import { copyIgnored } from "../worktrees/ignored-files";
import { defaultPlace } from "../worktrees/names";
import { refusePlace } from "../worktrees/new-worktree";
import { quietly, type Yard } from "../worktrees/place";
import { worktreeRecords } from "../worktrees/records";
import { runSetup } from "../worktrees/setup";
import { mendLink, pinnedTo } from "./pinned-git";
import type { DispatchParts } from "./report";
import type { AgentTemplate } from "./templates";

/** All workers are one session, whichever run they are of: whoever goes on after a kill holds what they held. */
export const WORKER_SESSION = "dispatch";
/** More than anybody starts, with those that others use. */
const MOST_SLOTS = 256;
/** An agent whose dispatcher was killed is ended within seconds; its slot is free then. */
const PATIENCE_MS = 8_000;
const LOOK_EVERY_MS = 100;

/** A worker's name and place: nobody else uses it while this process, or an agent that it has started, lives. */
export interface Slot {
  readonly number: number;
  readonly agentId: AgentId;
  readonly lock: Descriptor;
}

function workerId(name: string, number: number): AgentId {
  return orThrow(parseAgentId(`agent:${name}-${number}`));
}

/** So many that nobody uses, the lowest numbers first: what was left behind is in them. */
export async function takeSlots(parts: DispatchParts, name: string, wanted: number): Promise<Slot[]> {
  const slots: Slot[] = [];
  for (let number = 1; slots.length < wanted && number <= MOST_SLOTS; number++) {
    const slot = await slotAt(parts, name, number, { waits: true });
    if (slot !== null) slots.push(slot);
  }
  if (slots.length === wanted) return slots;
  for (const slot of slots) await giveBackSlot(parts, slot);
  throw new CotenantError("E_LIMIT", `${MOST_SLOTS} workers called ${name} are at work already`, {
    hint: "see who runs them: cotenant dispatch status",
  });
}

/** Those beyond ours that a killed run has left: nobody would give back what they hold. */
export async function abandonedSlots(
  parts: DispatchParts,
  name: string,
  ours: readonly Slot[],
): Promise<Slot[]> {
  const { files } = parts.workspace.surroundings.platform;
  const found: Slot[] = [];
  const prefix = `dispatch-${name}-`;
  for (const file of (await files.readDirectory(parts.workspace.store.layout.locks)) ?? []) {
    const number = file.startsWith(prefix)
      ? /^(\d{1,3})\.lock$/.exec(file.slice(prefix.length))?.[1]
      : undefined;
    if (number === undefined || ours.some((slot) => slot.number === Number(number))) continue;
    const slot = await slotAt(parts, name, Number(number), { waits: false });
    if (slot !== null) found.push(slot);
  }
  return found;
}

/** Null where somebody uses it, or did so as another user of the system: what proves its leases is theirs alone. */
async function slotAt(
  { workspace }: DispatchParts,
  name: string,
  number: number,
  { waits }: { readonly waits: boolean },
): Promise<Slot | null> {
  if (await isOfAnotherUser(workspace, workerId(name, number))) return null;
  const { files, locks, timers, clock, processes } = workspace.surroundings.platform;
  await workspace.store.prepare();
  const { file } = modesFor(workspace.repository.config.sharedRepository);
  const path = `${workspace.store.layout.locks}/dispatch-${name}-${number}.lock`;
  const lock = await files.open(path, "update-or-create", file);
  const until = clock.monotonicMs() + PATIENCE_MS;
  while (!(await locks.tryLock(lock))) {
    const user = await userOf(files, path);
    const isLeft = user !== null && (await processes.liveness(user)) === "dead";
    if (waits && isLeft && clock.monotonicMs() < until) {
      await timers.sleep(LOOK_EVERY_MS).done;
      continue;
    }
    await files.close(lock);
    return null;
  }
  const bytes = new TextEncoder().encode(`${JSON.stringify(processes.self())}\n`);
  await files.truncate(lock, 0);
  await files.writeAt(lock, bytes, 0);
  return { number, agentId: workerId(name, number), lock };
}

async function isOfAnotherUser({ surroundings, store }: Workspace, agentId: AgentId): Promise<boolean> {
  const party = { agentId, sessionId: orThrow(parseSessionId(WORKER_SESSION)) };
  try {
    await new SessionSecrets(surroundings.platform, store.layout, party, async () => {}).count();
    return false;
  } catch (error) {
    if (error instanceof CotenantError && error.code === "E_PERMISSION") return true;
    throw error;
  }
}

/** Which dispatcher it was that took it; its agents may outlive it for a moment. */
async function userOf(files: Platform["files"], path: string): Promise<ProcessIdentity | null> {
  try {
    return JSON.parse(
      new TextDecoder().decode((await files.readFile(path)) ?? new Uint8Array()),
    ) as ProcessIdentity;
  } catch {
    return null;
  }
}

export async function giveBackSlot({ workspace }: DispatchParts, { lock }: Slot): Promise<void> {
  const { files, locks } = workspace.surroundings.platform;
  await quietly(() => locks.unlock(lock));
  await quietly(() => files.close(lock));
}

/** A worker in its worktree. */
export interface Station {
  readonly slot: Slot;
  readonly workspace: Workspace;
  readonly session: Session;
  readonly root: string;
  readonly gitDir: string;
  readonly yard: Yard;
}

/** The worktree that a slot had before; null where there is none. */
export async function stationOf(parts: DispatchParts, slot: Slot): Promise<Station | null> {
  const { platform, git } = parts.workspace.surroundings;
  const records = await worktreeRecords(parts.workspace.coordinator);
  const list = () => listWorktrees(platform, git, parts.workspace.repository);
  const place = placeOf(parts, slot);
  // An agent that was killed with its dispatcher may have taken its link away.
  for (const one of await list())
    if (!one.exists && !one.isReplaced && one.root === place) await mendLink(platform, one);
  const entry = (await list()).find(({ worktreeId, exists }) => {
    const record = worktreeId === null ? undefined : records.get(worktreeId);
    return exists && record?.purpose === "dispatch" && record.agentId === slot.agentId;
  });
  return entry === undefined ? null : openStation(parts, slot, entry);
}

/** Where a slot's worktree is made. */
function placeOf({ workspace: { repository, config } }: DispatchParts, { agentId }: Slot): string {
  const mainRoot = repository.mainWorktreeRoot ?? parentOf(repository.commonDir) ?? repository.commonDir;
  const name = agentId.slice("agent:".length);
  return defaultPlace(mainRoot, config.values["worktree.directory"], `cotenant-${name}`);
}

/** The same, made where there is none: detached at the commit, with what the repository wants in a new worktree. */
export async function stationFor(
  parts: DispatchParts,
  slot: Slot,
  commit: string,
  template: AgentTemplate | null,
  say: (line: string) => void,
): Promise<Station> {
  const station = (await stationOf(parts, slot)) ?? (await makeStation(parts, slot, commit));
  await guardThere(parts, station, template, say);
  await setUp(parts, station, say);
  return station;
}

async function makeStation(parts: DispatchParts, slot: Slot, commit: string): Promise<Station> {
  const { workspace, session, trees } = parts;
  const { repository, config, surroundings } = workspace;
  const yard: Yard = { workspace, session, trees };
  if (config.values["worktree.mode"] === "off")
    throw policyError(
      "each worker needs a worktree of its own, and no worktrees are made here",
      "let whoever set worktree.mode = off change it",
      { setting: "worktree.mode" },
    );
  const place = placeOf(parts, slot);
  await refusePlace(yard, place).catch((error) => {
    if (!(error instanceof CotenantError)) throw error;
    const hint =
      "move what is there away, and start again; or say where worktrees are to be: cotenant config set worktree.directory <path>";
    throw error.with({ hint });
  });
  await makeWorktree(yard, {
    place,
    branch: null,
    isNewBranch: false,
    commit,
    record: { agentId: slot.agentId, issueId: null, snapshotId: null, purpose: "dispatch" },
    fill: async (root, run) => {
      await run(["-c", "submodule.recurse=false", "reset", "--hard", "--quiet"], "filling a worktree");
      const source = repository.mainWorktreeRoot ?? repository.worktreeRoot;
      await copyIgnored({ git: surroundings.git, trees }, source, root, config.values["worktree.copy"]);
    },
  });
  const made = await stationOf(parts, slot);
  if (made === null)
    throw new CotenantError(
      "E_NOT_FOUND",
      `the worktree of ${slot.agentId} is gone again: ${printable(place, 300)}`,
    );
  return made;
}

async function openStation(parts: DispatchParts, slot: Slot, entry: WorktreeEntry): Promise<Station> {
  const here = parts.workspace;
  await mendLink(here.surroundings.platform, entry);
  const there = surroundingsIn(here.surroundings, entry.root);
  const workspace = await Workspace.open(
    {
      ...there,
      git: pinnedTo(entry, here.surroundings.git),
      isTerminal: false,
      env: workerEnvironment(there.env),
    },
    {
      agentId: slot.agentId,
      session: WORKER_SESSION,
      doing: `dispatch, ${slot.agentId}`,
      isLongLived: true,
      // One door to the mutex for all workers (PROTOCOL 1).
      openStore: () => here.store,
      engine: async () => {
        const engine = await here.engine();
        return engine === here.coordinator ? null : engine;
      },
    },
  );
  const session = await workspace.session("write");
  const yard: Yard = { workspace, session, trees: parts.trees };
  return { slot, workspace, session, root: entry.root, gitDir: entry.gitDir, yard };
}

/** Who started the dispatcher is not who works: neither a harness around it nor a name or secret of its own counts. */
function workerEnvironment(env: Environment): Environment {
  const taken = new Set([...harnessVariables(), AGENT_VARIABLE, SESSION_VARIABLE, "COTENANT_SECRET"]);
  return Object.fromEntries(Object.entries(env).filter(([name]) => !taken.has(name)));
}

/** Harnesses that ask before each write in the main worktree ask here, too; the one that is started does in any case. */
async function guardThere(
  { workspace, program }: DispatchParts,
  station: Station,
  template: AgentTemplate | null,
  say: (line: string) => void,
): Promise<void> {
  if (program === null) return;
  const { failures, plans } = await carryAgents(workspace, station.workspace, program);
  for (const failure of failures) say(failure);
  if (template === null || plans.some(({ site }) => site.harness === template.harness)) return;
  await installAgents(projectLevel(station.workspace), [template.harness], {
    program,
    shared: false,
    via: null,
  });
}

/** `worktree.setup`, once, as far as this clone trusts it. */
async function setUp(parts: DispatchParts, station: Station, say: (line: string) => void): Promise<void> {
  const line = parts.workspace.config.values["worktree.setup"];
  const { worktreeId } = station.session.actor;
  const before = (await worktreeRecords(parts.workspace.coordinator)).get(worktreeId)?.setup ?? null;
  if (line === null || before === "done") return;
  say(`running ${printable(line, 200)} in ${printable(station.root, 300)}`);
  const yard: Yard = { workspace: parts.workspace, session: parts.session, trees: parts.trees };
  const end = await runSetup(yard, parts.commands, { worktreeId, root: station.root, branch: "" }, line);
  if (end.exitStatus === 0 && !end.timedOut) return;
  throw new CotenantError(
    "E_CHECK_FAILED",
    `worktree.setup failed in ${printable(station.root, 300)}: ${endText(end)}`,
    {
      hint: "mend it, and start again: it is run anew",
      data: { root: station.root, exit_status: end.exitStatus },
    },
  );
}

/** The last line that it printed, or how it ended. */
function endText({ output, exitStatus, signal, timedOut }: CommandEnd): string {
  const words = output.trim().split("\n").at(-1) ?? "";
  if (words !== "") return printable(words, 300);
  return timedOut
    ? "it took too long"
    : signal === null
      ? `it ended with status ${exitStatus}`
      : `${signal} ended it`;
}
