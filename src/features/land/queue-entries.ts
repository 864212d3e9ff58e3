import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, limitError, notFoundError, usageError } from "../../errors/cotenant-error";
import type { ObjectId } from "../../git/object-name";
import type { Fact, FactName } from "../../kernel/facts";
import { makeUlid, printable, ulidIn, ulidTimeMs } from "../../kernel/ids";
import { shellWord } from "../../kernel/printing";
import { tipOf } from "../publish/base";
import { branchName, refuseLedger } from "../publish/branch-rules";
import {
  entriesIn,
  entriesOf,
  entryName,
  entryToFact,
  LANDING,
  type LandEntry,
  METHODS,
  type Method,
  pushesUnderWay,
} from "./entry";
import { namedBranch, noTarget, shownBranch, targetRef } from "./target";

/** Entries travel in the log's checkpoints: a queue that nobody runs must not grow for ever. */
const MOST_ENTRIES = 1_000;
const LONGEST_MESSAGE = 4_000;

export interface EnqueueRequest {
  /** By their names; each as it is now. */
  readonly branches: readonly string[];
  /** Null: as the configuration says. */
  readonly target?: string | null | undefined;
  readonly method?: Method | null | undefined;
  /** The landing commit's message; null: made from the branch. */
  readonly message?: string | null | undefined;
  readonly issueId?: string | null | undefined;
}

export interface Enqueued {
  readonly entry: LandEntry;
  /** False where it was in the queue already, just so. */
  readonly changed: boolean;
  /** The entry of the same branch that it replaces. */
  readonly replaced: LandEntry | null;
}

/**
 * Adds branches to a target's queue, as they are now. The entry of a branch that is in it already is replaced, at the end;
 * method, message and issue stay, where the request says nothing of them.
 */
export async function enqueue(
  workspace: Workspace,
  session: Session,
  request: EnqueueRequest,
): Promise<readonly Enqueued[]> {
  const target = await targetRef(workspace, request.target ?? null);
  refuseUnknownMethod(request.method ?? null);
  const message = checkedMessage(request.message ?? null);
  const usual = workspace.config.values["land.method"] as Method;
  const wanted = new Map<string, ObjectId>();
  for (const text of request.branches) {
    const branch = namedBranch(text, "for example: cotenant land add work/login");
    wanted.set(branch, await refuseUnlandable(workspace, branch, target));
  }
  await refuseNowhere(workspace, target);
  let enqueued: Enqueued[] = [];
  await session.write<true>([], {
    about: `landing on ${target}`,
    facts: [],
    factKinds: [LANDING],
    isOnlyLogged: true,
    body: async ({ facts, now }) => {
      const all = entriesIn(facts);
      const open = all.filter(({ state }) => state !== "landed");
      const latest = all.at(-1);
      // Also where the clock was set back, or two are added in one millisecond: whoever comes later stands behind.
      let timeMs = Math.max(now.wallMs, latest === undefined ? 0 : ulidTimeMs(latest.entryId) + 1);
      enqueued = [];
      const changes = new Map<FactName, Fact | null>();
      for (const [branch, commit] of wanted) {
        const old = open.find((entry) => entry.branch === branch && entry.target === target) ?? null;
        const entry: LandEntry = {
          entryId: makeUlid(timeMs++, workspace.surroundings.platform.random.bytes(10)),
          ...{ target, branch, commit },
          // A branch that was mended lands as its entry was to, unless somebody says otherwise.
          method: request.method ?? old?.method ?? usual,
          message: message ?? old?.message ?? null,
          issueId: request.issueId ?? old?.issueId ?? null,
          addedBy: session.actor.agentId,
          addedAt: new Date(now.wallMs).toISOString(),
          ...{ state: "queued", parked: null, landed: null, underway: null },
        };
        if (old !== null && isAlike(old, entry)) {
          enqueued.push({ entry: old, changed: false, replaced: null });
          continue;
        }
        enqueued.push({ entry, changed: true, replaced: old });
        if (old !== null) changes.set(entryName(old.entryId), null);
        changes.set(entryName(entry.entryId), entryToFact(entry));
      }
      const added = enqueued.filter(({ changed }) => changed);
      if (open.length + added.filter(({ replaced }) => replaced === null).length > MOST_ENTRIES)
        throw limitError(
          `the merge queue has ${open.length} entries; ${MOST_ENTRIES} is the limit`,
          "land or remove some first: cotenant land list",
          { entries: open.length, limit: MOST_ENTRIES },
        );
      if (added.length === 0) return null;
      return {
        type: "land.added",
        payload: { target, entries: added.map(({ entry, replaced }) => lineOf(entry, replaced)) },
        facts: changes,
        answer: true,
      };
    },
  });
  return enqueued;
}

function lineOf(entry: LandEntry, replaced: LandEntry | null): Record<string, unknown> {
  return {
    entry_id: entry.entryId,
    branch: entry.branch,
    commit: entry.commit,
    method: entry.method,
    ...(entry.issueId === null ? {} : { issue_id: entry.issueId }),
    ...(replaced === null ? {} : { replaces: replaced.entryId }),
  };
}

function isAlike(old: LandEntry, entry: LandEntry): boolean {
  return (
    old.state === "queued" &&
    old.commit === entry.commit &&
    old.method === entry.method &&
    old.message === entry.message &&
    old.issueId === entry.issueId
  );
}

async function refuseUnlandable(workspace: Workspace, branch: string, target: string): Promise<ObjectId> {
  refuseLedger(branch, workspace.config.values["sync.ledger_branch"]);
  if (branch === target)
    throw new CotenantError("E_USAGE", `${shownBranch(branch)} cannot land on itself`, {
      hint: "name the branch with the work, and --target for where it goes",
      data: { branch, target },
    });
  const tip = await tipOf(workspace, branch);
  if (tip !== null) return tip;
  throw new CotenantError("E_NOT_FOUND", `there is no branch ${shownBranch(branch)} here`, {
    hint: await bringingHere(workspace, branchName(branch)),
    data: { branch },
  });
}

/** A branch of a remote may be named with the remote's name, or without. */
async function bringingHere(workspace: Workspace, name: string): Promise<string> {
  const own = name.slice(name.indexOf("/") + 1);
  if ((await tipOf(workspace, `refs/remotes/${name}`)) !== null)
    return `make a branch of it: git branch ${shellWord(own)} ${shellWord(name)}; then: cotenant land add ${shellWord(own)}`;
  return `'git branch' shows those that there are; one of the remote's: git branch ${shellWord(name)} ${shellWord(`origin/${name}`)}`;
}

/** Entries with a method that is none could not be read back. */
function refuseUnknownMethod(method: string | null): void {
  if (method === null || (METHODS as readonly string[]).includes(method)) return;
  throw usageError(`"${printable(method)}" is not a way to land`, `use one of ${METHODS.join(", ")}`);
}

/** Where there is a remote, a run with --push may find the target there, also one that was never fetched. */
async function refuseNowhere(workspace: Workspace, target: string): Promise<void> {
  if ((await tipOf(workspace, target)) !== null) return;
  const { surroundings, repository } = workspace;
  const { stdout } = await surroundings.git.run(["remote"], { cwd: repository.worktreeRoot });
  if (stdout.length === 0) throw noTarget(target);
}

function checkedMessage(message: string | null): string | null {
  if (message === null || message.trim() === "") return null;
  if (message.length <= LONGEST_MESSAGE && !message.includes("\0")) return message;
  throw new CotenantError(
    "E_LIMIT",
    `the message is longer than ${LONGEST_MESSAGE} characters, or has a NUL in it`,
  );
}

/** Everything that waits or was put aside, oldest first; with `all`, also what has landed lately. */
export async function queueOf(
  workspace: Pick<Workspace, "coordinator">,
  target: string | null = null,
  { all = false }: { readonly all?: boolean } = {},
): Promise<readonly LandEntry[]> {
  return (await entriesOf(workspace.coordinator)).filter(
    (entry) => (target === null || entry.target === target) && (all || entry.state !== "landed"),
  );
}

/** The entry that a word means: its id, the end of one, or its branch. */
export async function meantEntry(
  workspace: Pick<Workspace, "coordinator">,
  word: string,
  target: string | null = null,
): Promise<LandEntry> {
  const open = await queueOf(workspace, target);
  const id = ulidIn(word);
  const ref = word.startsWith("refs/") ? word : `refs/heads/${word}`;
  const named = open.filter(({ entryId, branch }) => branch === ref || entryId === id);
  const found =
    named.length > 0 || word.length < 4
      ? named
      : open.filter(({ entryId }) => entryId.endsWith(word.toUpperCase()));
  if (found.length === 1) return found[0]!;
  if (found.length > 1)
    throw new CotenantError(
      "E_AMBIGUOUS_ID",
      `"${printable(word)}" means ${found.length} entries of the merge queue`,
      {
        hint: "name the entry by its whole id, or --target: cotenant land list",
        data: { entries: found.map(({ entryId }) => entryId) },
      },
    );
  throw notFoundError(`"${printable(word)}" is not in the merge queue`, "see what is: cotenant land list", {
    entry: printable(word),
  });
}

/** Takes an entry out of the queue; its branch stays as it is. */
export async function removeEntry(
  workspace: Workspace,
  session: Session,
  entry: LandEntry,
  { reason = null }: { readonly reason?: string | null } = {},
): Promise<LandEntry> {
  const removed = await change(session, entry, "land.removed", null, { reason });
  workspace.warnings.push(...pushesUnderWay([removed]));
  return removed;
}

/** Puts an entry that was put aside back into the queue, as it was added. */
export async function retryEntry(session: Session, entry: LandEntry): Promise<LandEntry> {
  if (entry.state === "queued") return entry;
  const again: LandEntry = { ...entry, state: "queued", parked: null };
  return change(session, entry, "land.retried", again, {});
}

async function change(
  session: Session,
  entry: LandEntry,
  type: string,
  next: LandEntry | null,
  payload: Readonly<Record<string, unknown>>,
): Promise<LandEntry> {
  const name = entryName(entry.entryId);
  let before: LandEntry | null = null;
  await session.write<true>([], {
    about: `landing on ${entry.target}`,
    facts: [name],
    isOnlyLogged: true,
    body: async ({ facts }) => {
      const [now] = entriesIn(facts);
      before = now === undefined || now.state === "landed" ? null : now;
      if (before === null) return null;
      return {
        type,
        payload: { target: entry.target, entry_id: entry.entryId, branch: entry.branch, ...payload },
        facts: new Map([[name, next === null ? null : entryToFact(next)]]),
        answer: true,
      };
    },
  });
  if (before !== null) return next ?? before;
  throw new CotenantError("E_NOT_FOUND", `${shownBranch(entry.branch)} has left the merge queue meanwhile`, {
    hint: "see what became of it: cotenant land list --all",
    data: { entry_id: entry.entryId, branch: entry.branch },
  });
}
