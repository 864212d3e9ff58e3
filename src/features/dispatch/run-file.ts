import { jsonObject } from "../../codec/json";
import { toCamelCase, toSnakeCase } from "../../codec/names";
import type { Workspace } from "../../coordinator/workspace";
import { type AgentId, type Ulid, ulidIn } from "../../kernel/ids";
import { overwriteFile } from "../../platform/overwrite-file";
import type { ProcessIdentity } from "../../platform/platform";
import { modesFor } from "../../store/layout";
import { dispatchFolder } from "./logs";
import type { IssueEnd } from "./report";

/** What a worker is doing. */
export interface WorkerState {
  readonly number: number;
  readonly agentId: AgentId;
  /** `starting`, `idle`, or what it does with its issue. */
  readonly doing: string;
  readonly issueId: Ulid | null;
  readonly shortId: string | null;
  readonly title: string | null;
  readonly branch: string | null;
  readonly worktree: string | null;
  readonly log: string | null;
  /** When it took the issue. */
  readonly since: string | null;
  /** How long nothing has been heard of its agent; null where all is well. */
  readonly silentSecs: number | null;
}

/** A run as others see it. Only for people and programs that look: whoever goes on after a kill reads the log. */
export interface RunState {
  readonly runId: Ulid;
  readonly by: AgentId;
  readonly process: ProcessIdentity;
  readonly startedAt: string;
  readonly endedAt: string | null;
  /** What is run: a template's name, or the command. */
  readonly runs: string;
  readonly delivery: string;
  readonly target: string;
  readonly workers: readonly WorkerState[];
  readonly ends: Readonly<Partial<Record<IssueEnd, number>>>;
  /** Available issues that nobody works on, when somebody last looked. */
  readonly left: number | null;
  /** Until all of them are done, as far as that can be told. */
  readonly etaSecs: number | null;
  readonly costUsd: number | null;
  readonly offlineClaims: number;
}

/** How somebody asks a run to end. `drain`: it takes no more issues. `now`: it stops its agents. */
export type StopHow = "drain" | "now";

/** The ends that are counted are names themselves. */
const ENDS = new Set(["ends"]);
const MOST_KEPT = 20;
const RUN = /^run-([0-9a-z]{26})\.json$/;

function pathOf(workspace: Pick<Workspace, "store">, runId: Ulid, ending: "json" | "stop"): string {
  return `${dispatchFolder(workspace)}/run-${runId.toLowerCase()}.${ending}`;
}

/** Written whole and renamed into place, so that nobody reads half of it. Never the reason why a run fails. */
export async function writeRun(workspace: Workspace, state: RunState): Promise<void> {
  const { files } = workspace.surroundings.platform;
  const { directory, file } = modesFor(workspace.repository.config.sharedRepository);
  const path = pathOf(workspace, state.runId, "json");
  try {
    await files.makeDirectory(dispatchFolder(workspace), directory);
    const text = `${JSON.stringify(toSnakeCase({ schemaVersion: 1, ...state }, ENDS))}\n`;
    await overwriteFile(files, `${path}.new`, text, file);
    await files.rename(`${path}.new`, path);
  } catch {
    // Whoever looks sees what was so before.
  }
}

export interface SeenRun {
  readonly state: RunState;
  /** Whether its process is still there. */
  readonly isAlive: boolean;
}

/** The runs of which something is known here, the newest first. */
export async function runsSeen(workspace: Workspace): Promise<SeenRun[]> {
  const { files, processes } = workspace.surroundings.platform;
  const folder = dispatchFolder(workspace);
  const seen: SeenRun[] = [];
  for (const name of (await files.readDirectory(folder)) ?? []) {
    if (!RUN.test(name)) continue;
    const state = decode(await files.readFile(`${folder}/${name}`));
    if (state === null) continue;
    const isAlive = state.endedAt === null && (await processes.liveness(state.process)) !== "dead";
    seen.push({ state, isAlive });
  }
  return seen.sort((a, b) => (a.state.runId < b.state.runId ? 1 : -1));
}

function decode(bytes: Uint8Array | null): RunState | null {
  const written = bytes === null ? null : jsonObject(new TextDecoder().decode(bytes));
  const state = toCamelCase(written, ENDS) as (RunState & { schemaVersion: unknown }) | null;
  const isOurs = state?.schemaVersion === 1 && ulidIn(state.runId) !== null && Array.isArray(state.workers);
  return isOurs ? state : null;
}

/** Leaves word for a run, which looks for it every second or so. */
export async function askToStop(workspace: Workspace, runId: Ulid, how: StopHow): Promise<void> {
  const { files } = workspace.surroundings.platform;
  const { file } = modesFor(workspace.repository.config.sharedRepository);
  await overwriteFile(files, pathOf(workspace, runId, "stop"), `${how}\n`, file);
}

export async function stopAsked(workspace: Workspace, runId: Ulid): Promise<StopHow | null> {
  const bytes = await workspace.surroundings.platform.files.readFile(pathOf(workspace, runId, "stop"));
  const word = bytes === null ? "" : new TextDecoder().decode(bytes).trim();
  return word === "drain" || word === "now" ? word : null;
}

/** Takes away what is known of the oldest runs that are over; their number has a limit. */
export async function tidyRuns(workspace: Workspace): Promise<void> {
  const { files } = workspace.surroundings.platform;
  const over = (await runsSeen(workspace)).filter(({ isAlive }) => !isAlive);
  for (const { state } of over.slice(MOST_KEPT)) await files.unlink(pathOf(workspace, state.runId, "json"));
  const alive = new Set<string>(
    (await runsSeen(workspace)).filter((run) => run.isAlive).map(({ state }) => state.runId),
  );
  for (const name of (await files.readDirectory(dispatchFolder(workspace))) ?? []) {
    const id = /^run-([0-9a-z]{26})\.(?:stop|json\.new)$/.exec(name)?.[1]?.toUpperCase();
    if (id !== undefined && !alive.has(id)) await files.unlink(`${dispatchFolder(workspace)}/${name}`);
  }
}
