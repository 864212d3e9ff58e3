import type { LeaseStatus } from "../../coordinator/contract";
import { type AgentId, printable } from "../../kernel/ids";
import { dirKey, kindOf, type LeaseKey, nameOf } from "../../kernel/keys";
import type { PlacedRule } from "../../kernel/path-rules";
import { isRefusal } from "../../kernel/refusal";
import type { FileStat } from "../../platform/platform";
import type { Checking } from "../check";
import { dirtyPaths, keyOf } from "../git-state";
import { openPlace, type Place, repositoryOf } from "../place";
import { tracedAtMs } from "../traces";
import { type GuardViolation, recordViolations } from "../violations";
import { whoIs } from "../who";

/**
 * What a shell command did that nobody could read from it. Before it runs, the files that others hold are looked at; after
 * it has run, again. The two looks meet in a small file, by the harness's own name for this use of the tool.
 */
interface Before {
  readonly atMs: number;
  readonly command: string;
  /** By path from the worktree's root. */
  readonly files: Readonly<Record<string, string>>;
  readonly ruled?: Ruled;
}

/** The rules as they were before the command, which may have taken them off; and what differed from HEAD against them. */
interface Ruled {
  readonly rules: readonly PlacedRule[];
  readonly files: Readonly<Record<string, string>>;
}

/** Beyond this many files of others, Git is asked instead; of those that rules forbid, no more are looked at. */
const MOST_FILES = 2_000;
/** A write that its holder was given leave for may come a little later. */
export const SLACK_MS = 5_000;

export async function remember(checking: Checking, cwd: string, command: string): Promise<void> {
  const place = await placeAt(checking, cwd);
  if (place === null) return;
  const held = await heldByOthers(place);
  const { pathRules: rules } = place.settings;
  const forbidden = await forbiddenMarks(place, rules);
  if (held.length === 0 && forbidden === null) return;
  const before: Before = {
    atMs: place.world.platform.clock.wallMs(),
    command: gistOf(command),
    files: await marksOf(place, held),
    ...(forbidden === null ? {} : { ruled: { rules, files: forbidden } }),
  };
  const { files } = place.world.platform;
  const { layout, options } = place.coordinator.store;
  // Where somebody holds something, there is a store.
  if (held.length === 0) await place.coordinator.store.prepare();
  await files.makeDirectory(layout.guard, options.modes.directory);
  const path = noteFile(place, checking, command);
  await files.unlink(path);
  const fd = await files.open(path, "create", options.modes.file);
  try {
    await files.writeAt(fd, new TextEncoder().encode(JSON.stringify(before)), 0);
  } finally {
    await files.close(fd);
  }
}

/** Its first words, for people to know it by. The rest may hold what is nobody's business, such as keys. */
function gistOf(command: string): string {
  const words = command
    .trim()
    .split(/\s+/)
    .filter((word) => !/[=:@]/.test(word));
  return printable(words.slice(0, 3).join(" "), 60);
}

/** What changed while a command ran, and should not have. */
export interface Compared {
  readonly violations: readonly GuardViolation[];
  /** What the agent hears of files that a rule forbids it to write; null where there are none. */
  readonly ruled: string | null;
}

const NOTHING: Compared = { violations: [], ruled: null };

/** After the command. Answers what it changed under somebody else's lease, and against a rule. */
export async function compare(checking: Checking, cwd: string, command: string): Promise<Compared> {
  const place = await placeAt(checking, cwd);
  if (place === null) return NOTHING;
  const { files, digest } = place.world.platform;
  const path = noteFile(place, checking, command);
  const before = await readNote(place, path);
  if (before === null) return NOTHING;
  // Whoever cannot tell the agent leaves it to the other report of the same command, which may be a moment behind.
  if (!checking.report.isBorrowed) await files.unlink(path);
  const held = await heldByOthers(place);
  const after = await marksOf(place, held);
  const violations: Omit<GuardViolation, "at">[] = [];
  for (const file of new Set([...Object.keys(before.files), ...Object.keys(after)])) {
    if (!Object.hasOwn(before.files, file) && !isInDirectory(held, file)) continue;
    if (before.files[file] === after[file] || !Object.hasOwn(after, file)) continue;
    const violation = await violationOf(place, held, file, before);
    if (violation !== null) violations.push(violation);
  }
  await recordViolations(place.session, digest, violations, before.atMs);
  const at = new Date(before.atMs).toISOString();
  return {
    violations: violations.map((violation) => ({ ...violation, at })),
    ruled: before.ruled === undefined ? null : await ruledChanges(place, held, before.ruled),
  };
}

/** Null where no rule binds the agent: mostly there is none. */
async function forbiddenMarks(
  place: Place,
  rules: readonly PlacedRule[],
): Promise<Record<string, string> | null> {
  if (rules.length === 0) return null;
  const { judgeOf } = await import("../path-rules");
  const judge = judgeOf(place, rules);
  if (judge === null) return null;
  const dirty = await dirtyPaths(place, []);
  const forbidden = dirty.filter((path) => judge.writing(path) !== null);
  return marks(place, forbidden.slice(0, MOST_FILES));
}

/** What others hold is theirs to write. */
async function ruledChanges(
  place: Place,
  held: readonly LeaseStatus[],
  { rules, files: before }: Ruled,
): Promise<string | null> {
  const after = (await forbiddenMarks(place, rules)) ?? {};
  const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (path) => before[path] !== after[path] && !isHeld(held, keyOf(place, path), path),
  );
  if (changed.length === 0) return null;
  const { changedMeanwhile } = await import("../path-rules");
  return changedMeanwhile(place, rules, changed);
}

function isHeld(held: readonly LeaseStatus[], key: LeaseKey | null, path: string): boolean {
  return held.some(({ lease }) => lease.key === key) || isInDirectory(held, path);
}

async function violationOf(
  place: Place,
  held: readonly LeaseStatus[],
  file: string,
  { atMs, command }: Before,
): Promise<Omit<GuardViolation, "at"> | null> {
  const key = keyOf(place, file);
  if (key === null) return null;
  const holder = held.find(({ lease }) => lease.key === key || isDirectoryOver(lease.key, file));
  if (holder === undefined) return null;
  const { lease } = holder;
  // Its holder may write it at any time: what was written with leave is nobody's fault.
  const traced = Math.max(
    lease.acquiredAt.wallMs,
    (await tracedAtMs(place, lease.key, lease.worktreeId)) ?? 0,
  );
  if (traced > atMs - SLACK_MS) return null;
  const { agentId, sessionId } = place.session.actor;
  return {
    path: file,
    key,
    worktreeId: place.worktreeId,
    agentId: agentId as AgentId,
    sessionId,
    owner: lease.agentId,
    ownerSession: lease.sessionId,
    leaseId: lease.leaseId,
    command,
  };
}

async function placeAt({ world, report }: Checking, cwd: string): Promise<Place | null> {
  const repository = await repositoryOf(world, cwd);
  return repository === null ? null : openPlace(world, repository, await whoIs(world, report));
}

/** Valid leases of other sessions on files and directories of this worktree. */
async function heldByOthers({ coordinator, worktreeId, who }: Place): Promise<LeaseStatus[]> {
  const whole = dirKey(".");
  if (isRefusal(whole)) return [];
  const found = await coordinator.overlapping([{ key: whole, reach: "worktree", worktreeId }]);
  return found.filter(({ lease, standing }) => standing === "valid" && lease.sessionId !== who.sessionId);
}

/** A mark that differs when a file was written, made or removed. */
async function marksOf(place: Place, held: readonly LeaseStatus[]): Promise<Record<string, string>> {
  const named = held
    .filter(({ lease }) => kindOf(lease.key) === "file")
    .map(({ lease }) => nameOf(lease.key));
  const directories = held
    .filter(({ lease }) => kindOf(lease.key) === "dir")
    .map(({ lease }) => nameOf(lease.key));
  const specs = named.length > MOST_FILES ? ["."] : directories;
  const dirty =
    specs.length === 0
      ? []
      : await dirtyPaths(
          place,
          specs.map((path) => `:(top,literal)${path}`),
        );
  return marks(place, new Set([...named.slice(0, MOST_FILES), ...dirty]));
}

async function marks(place: Place, paths: Iterable<string>): Promise<Record<string, string>> {
  // Null prototype: a file may be called `__proto__`.
  const found: Record<string, string> = Object.create(null);
  for (const path of paths) {
    const stat = await seen(place, `${place.repository.worktreeRoot}/${path}`);
    found[path] = stat === null ? "gone" : `${stat.kind} ${stat.inode} ${stat.size} ${stat.mtimeMs}`;
  }
  return found;
}

async function seen({ world }: Place, path: string): Promise<FileStat | null> {
  try {
    return await world.platform.files.lstat(path);
  } catch {
    return null;
  }
}

function isInDirectory(held: readonly LeaseStatus[], file: string): boolean {
  return held.some(({ lease }) => isDirectoryOver(lease.key, file));
}

function isDirectoryOver(key: LeaseKey, file: string): boolean {
  if (kindOf(key) !== "dir") return false;
  const directory = nameOf(key);
  return directory === "." || file.startsWith(`${directory}/`);
}

async function readNote(place: Place, path: string): Promise<Before | null> {
  const bytes = await place.world.platform.files.readFile(path);
  if (bytes === null) return null;
  try {
    const { atMs, command, files, ruled } = JSON.parse(new TextDecoder().decode(bytes)) as Before;
    if (typeof atMs !== "number" || typeof files !== "object" || files === null) return null;
    return { atMs, command: String(command), files, ...(Array.isArray(ruled?.rules) ? { ruled } : {}) };
  } catch {
    return null;
  }
}

/** Harnesses without a name for each use run one command at a time, or the same one: its text must do. */
function noteFile({ coordinator, world, who }: Place, { report }: Checking, command: string): string {
  const id = `${who.agentId}\n${who.sessionId}\n${report.toolUseId ?? command}`;
  return `${coordinator.store.layout.guard}/shell-${world.platform.digest.sha256(id).slice(0, 32)}`;
}
