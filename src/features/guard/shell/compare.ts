import type { LeaseStatus } from "../../../coordinator/contract";
import { agentType, printable, type SessionId } from "../../../kernel/ids";
import { dirKey, kindOf, type LeaseKey, nameOf } from "../../../kernel/keys";
import type { PlacedRule } from "../../../kernel/path-rules";
import { isRefusal } from "../../../kernel/refusal";
import type { FileStat } from "../../../platform/platform";
import type { Checking } from "../check";
import { dirtyPaths, keyOf } from "../git-state";
import { leaveTrace, tracedAtMs } from "../small-files";
import { type GuardViolation, recordViolations } from "../violations";
import { whoIs } from "../who";
import { type GuardedWorktree, openWorktree, repositoryOf } from "../worktree";
import { noteFile, notesOf, type Ruled, readNote, type ShellNote, writeNote } from "./notes";
import { leftRunning } from "./survivors";

/** Beyond this many files of others, Git is asked instead; of those that rules forbid, no more are looked at. */
const MOST_FILES = 2_000;
/** A write that its holder was given leave for may come a little later. */
export const SLACK_MS = 5_000;
/** The same where something runs in the background: a person may be asked first, or the holder has something running, too. */
const LATER_SLACK_MS = 600_000;

/** Before the command. Where nobody has ever held anything, nothing is put down. */
export async function remember(checking: Checking, cwd: string, command: string): Promise<void> {
  const place = await placeAt(checking, cwd);
  if (place === null) return;
  const { files, processes } = place.world.platform;
  const { store } = place.coordinator;
  const { pathRules: rules } = place.settings;
  const now = await survey(place, rules);
  const isNew = (await files.stat(store.layout.root)) === null;
  if (isNew && now.held.length === 0 && now.forbidden === null) return;
  if (isNew) await store.prepare();
  await writeNote(place, noteFile(place, checking, command), {
    command: gistOf(command),
    since: processes.self().startTime,
    isOver: false,
    harness: checking.report.harness,
    ids: [checking.report.sessionId, checking.report.subagent].filter((id) => id !== null),
    ...seenIn(place, now, rules),
  });
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
  readonly violations: readonly Omit<GuardViolation, "at">[];
  /** What the agent hears of files that a rule forbids it to write; null where there are none. */
  readonly ruled: string | null;
}

const NOTHING: Compared = { violations: [], ruled: null };

/** After the command. Answers what it changed under somebody else's lease, and against a rule. */
export async function compare(checking: Checking, cwd: string, command: string): Promise<Compared> {
  const place = await placeAt(checking, cwd);
  if (place === null) return NOTHING;
  const path = noteFile(place, checking, command);
  const note = await readNote(place, path);
  if (note === null) return NOTHING;
  const [compared, seen] = await compareWith(place, note, await survey(place, note.ruled?.rules ?? []));
  // Whoever cannot tell the agent leaves it to the other report of the same command, which may be a moment behind.
  if (checking.report.isBorrowed) return compared;
  await keepWhileRunning(place, path, { ...note, ...seen, isOver: true });
  return compared;
}

/**
 * At any other event of the session: what its commands did in the background, also those of whose end no harness tells.
 * `isTurnOver`: none is still to come that was looked at before it runs. `isEnd`: nobody will look again.
 */
export async function compareAgain(
  place: GuardedWorktree,
  { isTurnOver, isEnd, except }: { isTurnOver: boolean; isEnd: boolean; except: string | null },
): Promise<Compared> {
  const violations: Omit<GuardViolation, "at">[] = [];
  const ruled: string[] = [];
  // Mostly all of them go by the same rules, and then one look does for all.
  const surveys = new Map<string, Survey>();
  for (const path of await notesOf(place, place.who.sessionId)) {
    const note = path === except ? null : await readNote(place, path);
    if (note === null) continue;
    const rules = note.ruled?.rules ?? [];
    const name = JSON.stringify(rules);
    const now = surveys.get(name) ?? (await survey(place, rules));
    surveys.set(name, now);
    const [compared, seen] = await compareWith(place, note, now);
    violations.push(...compared.violations);
    if (compared.ruled !== null) ruled.push(compared.ruled);
    const after = { ...note, ...seen };
    if (isEnd) await drop(place, path);
    else if (!note.isOver && !isTurnOver) await writeNote(place, path, after);
    else await keepWhileRunning(place, path, after);
  }
  return { violations, ruled: ruled.length === 0 ? null : ruled.join("\n") };
}

/** For how long something counts as left by a command of which that cannot be told. */
const UNSURE_MS = 600_000;

/** For as long as something runs that the command has left; not for long if that is only possible. */
async function keepWhileRunning(place: GuardedWorktree, path: string, note: ShellNote): Promise<void> {
  const left = await leftRunning(place, note);
  const { unsureSinceMs = note.atMs, ...rest } = note;
  if (left === "its own") await writeNote(place, path, rest);
  else if (left === "perhaps" && note.atMs - unsureSinceMs < UNSURE_MS)
    await writeNote(place, path, { ...rest, unsureSinceMs });
  else await drop(place, path);
}

async function drop({ world }: GuardedWorktree, path: string): Promise<void> {
  await world.platform.files.unlink(path);
}

/** What has changed since the note, and how things stand now. */
async function compareWith(place: GuardedWorktree, note: ShellNote, now: Survey): Promise<[Compared, Seen]> {
  await traceOwn(place, note, now);
  const violations: Omit<GuardViolation, "at">[] = [];
  for (const file of new Set([...Object.keys(note.files), ...Object.keys(now.files)])) {
    if (!Object.hasOwn(note.files, file) && !isInDirectory(now.held, file)) continue;
    if (note.files[file] === now.files[file] || !Object.hasOwn(now.files, file)) continue;
    const violation = await violationOf(place, now.held, file, note);
    if (violation !== null) violations.push(violation);
  }
  await recordViolations(place.session, place.world.platform.digest, violations, note.atMs);
  const ruled = note.ruled === undefined ? null : await ruledChanges(place, now, note.ruled);
  return [{ violations, ruled }, seenIn(place, now, note.ruled?.rules ?? [])];
}

/** What a session's own command wrote of what the session holds was written with leave. */
async function traceOwn(place: GuardedWorktree, note: ShellNote, { mine, own }: Survey): Promise<void> {
  const changed = mine.filter(({ lease }) =>
    Object.keys(own).some(
      (file) =>
        note.own[file] !== own[file] &&
        (lease.key === keyOf(place, file) || isDirectoryOver(lease.key, file)),
    ),
  );
  await leaveTrace(
    place,
    changed.map(({ lease }) => lease),
  );
}

type Seen = Pick<ShellNote, "atMs" | "files" | "own" | "ruled">;

function seenIn(
  place: GuardedWorktree,
  { files, own, forbidden }: Survey,
  rules: readonly PlacedRule[],
): Seen {
  return {
    atMs: place.world.platform.clock.wallMs(),
    files,
    own,
    ...(forbidden === null ? {} : { ruled: { rules, files: forbidden } }),
  };
}

/** One look at everything that a command could change and should not. */
interface Survey {
  /** Valid leases of others on files and directories of this worktree. */
  readonly held: readonly LeaseStatus[];
  /** Those of the session itself. */
  readonly mine: readonly LeaseStatus[];
  readonly files: Readonly<Record<string, string>>;
  readonly own: Readonly<Record<string, string>>;
  /** Null where no rule binds the agent: mostly there is none. */
  readonly forbidden: Readonly<Record<string, string>> | null;
}

async function survey(place: GuardedWorktree, rules: readonly PlacedRule[]): Promise<Survey> {
  const valid = await validHere(place);
  const isMine = ({ lease }: LeaseStatus) => lease.sessionId === place.who.sessionId;
  const mine = valid.filter(isMine);
  const held = valid.filter((status) => !isMine(status));
  return {
    held,
    mine,
    files: await marksOf(place, held),
    own: await marksOf(place, mine),
    forbidden: await forbiddenMarks(place, rules),
  };
}

async function forbiddenMarks(
  place: GuardedWorktree,
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
  place: GuardedWorktree,
  { held, forbidden }: Survey,
  { rules, files: before }: Ruled,
): Promise<string | null> {
  const after = forbidden ?? {};
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
  place: GuardedWorktree,
  held: readonly LeaseStatus[],
  file: string,
  { atMs, command, isOver }: ShellNote,
): Promise<Omit<GuardViolation, "at"> | null> {
  const key = keyOf(place, file);
  if (key === null) return null;
  const holder = held.find(({ lease }) => lease.key === key || isDirectoryOver(lease.key, file));
  if (holder === undefined) return null;
  const { lease } = holder;
  // Its holder may write it at any time: what was written with leave is nobody's fault.
  if (lease.acquiredAt.wallMs > atMs - SLACK_MS) return null;
  const tracedMs = (await tracedAtMs(place, lease.key, lease.worktreeId)) ?? 0;
  if (tracedMs > atMs - (isOver ? LATER_SLACK_MS : SLACK_MS)) return null;
  // Something in the background is there all the time. That people use editors, or the holder runs a command, is likelier.
  if (isOver && (agentType(lease.agentId) === "human" || (await hasCommand(place, lease.sessionId))))
    return null;
  const { agentId, sessionId } = place.session.actor;
  return {
    path: file,
    key,
    worktreeId: place.worktreeId,
    agentId,
    sessionId,
    owner: lease.agentId,
    ownerSession: lease.sessionId,
    leaseId: lease.leaseId,
    command,
    holder: place.who.holder,
    ownerHolder: lease.holder,
  };
}

async function placeAt({ world, report }: Checking, cwd: string): Promise<GuardedWorktree | null> {
  const repository = await repositoryOf(world, cwd);
  return repository === null ? null : openWorktree(world, repository, await whoIs(world, report));
}

/** Whether a command of a session's is under way that nobody could read. */
async function hasCommand(place: GuardedWorktree, sessionId: SessionId): Promise<boolean> {
  for (const path of await notesOf(place, sessionId))
    if ((await readNote(place, path))?.isOver === false) return true;
  return false;
}

async function validHere({ coordinator, worktreeId }: GuardedWorktree): Promise<LeaseStatus[]> {
  const whole = dirKey(".");
  if (isRefusal(whole)) return [];
  const found = await coordinator.overlapping([{ key: whole, reach: "worktree", worktreeId }]);
  return found.filter(({ standing }) => standing === "valid");
}

/** A mark that differs when a file was written, made or removed. */
async function marksOf(
  place: GuardedWorktree,
  held: readonly LeaseStatus[],
): Promise<Record<string, string>> {
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

async function marks(place: GuardedWorktree, paths: Iterable<string>): Promise<Record<string, string>> {
  // Null prototype: a file may be called `__proto__`.
  const found: Record<string, string> = Object.create(null);
  for (const path of paths) {
    const stat = await seen(place, `${place.repository.worktreeRoot}/${path}`);
    found[path] = stat === null ? "gone" : `${stat.kind} ${stat.inode} ${stat.size} ${stat.mtimeMs}`;
  }
  return found;
}

async function seen({ world }: GuardedWorktree, path: string): Promise<FileStat | null> {
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
