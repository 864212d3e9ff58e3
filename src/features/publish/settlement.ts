import { checkRequestId } from "../../coordinator/local";
import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { isObjectId } from "../../git/object-name";
import { type RefValue, readRef } from "../../git/refs";
import { joinPath } from "../../identity/path-text";
import type { FactName, FactRecord } from "../../kernel/facts";
import type { Ulid } from "../../kernel/ids";
import { refKey } from "../../kernel/keys";
import { isRefusal } from "../../kernel/refusal";
import type { Platform } from "../../platform/platform";
import { usesOf } from "./branch-rules";
import { eventOf, INTENT, type Intent, intentFromFact, intentName } from "./intents";

type Fate = "committed" | "abandoned" | "unsettled";

export interface SettledIntent {
  readonly intent: Intent;
  readonly fate: Fate;
}

/** For a process in another namespace, which cannot be seen. */
const PATIENCE_MS = 600_000;
/** PROTOCOL 19: an empty lock file may still be about to get its content. */
const EMPTY_LOCK_MS = 10_000;
/** Most take milliseconds: the lease of a younger one is not looked up. */
const YOUNG_MS = 2_000;
const MOST_LOOKS = 5;
const MOST_LOOKS_AT_GIT = 50;

/**
 * Finds out what became of publishes whose processes are gone, and writes it down: the ref itself is the witness. `own`
 * names those that this process has given up itself. Mostly there are none, which one look at the index tells; `isSure`
 * asks the log as well, which may know of one that the index does not know yet.
 */
export async function settleIntents(
  workspace: Workspace,
  session: Session,
  own: ReadonlySet<Ulid> = new Set(),
  isSure = false,
): Promise<SettledIntent[]> {
  const settled: SettledIntent[] = [];
  const { files } = workspace.surroundings.platform;
  const seen = await files.readDirectory(`${workspace.store.layout.index}/facts/${INTENT}`);
  if (!isSure && (seen === null || seen.length === 0)) return settled;
  for (const intent of await openIntents(workspace)) {
    if (!(await isOver(workspace, intent, own)) && !(await isFenced(workspace, intent))) continue;
    const fate = await settle(workspace, session, intent);
    if (fate !== null) settled.push({ intent, fate });
  }
  return settled;
}

/** Those that nobody has written the end of yet, whether or not somebody is still at work on them. */
export async function openIntents({ coordinator }: Pick<Workspace, "coordinator">): Promise<Intent[]> {
  return intentsIn(await coordinator.facts({ kinds: [INTENT] }));
}

export function intentsIn(facts: ReadonlyMap<FactName, FactRecord>): Intent[] {
  return [...facts].flatMap(([name, { value }]) => intentFromFact(name, value) ?? []);
}

/** Whether nobody is at work on it any more: neither who wanted it, nor the Git that may commit it. */
export async function isOver(
  { surroundings }: { readonly surroundings: { readonly platform: Platform } },
  { intentId, publisher, git, atMs }: Intent,
  own: ReadonlySet<Ulid> = new Set(),
): Promise<boolean> {
  const { processes, clock } = surroundings.platform;
  if ((await processes.liveness(git)) === "alive") return false;
  if (own.has(intentId)) return true;
  const liveness = await processes.liveness(publisher);
  return liveness === "dead" || (liveness === "unknown" && clock.wallMs() - atMs > PATIENCE_MS);
}

/**
 * Whether the branch is not its any more: a publisher that was stopped for so long may go on one day, and will find that it
 * was given up. Another process of the same session has the same lease, and is at work under it.
 */
async function isFenced(
  { coordinator, surroundings }: Workspace,
  { ref, branchLease, atMs }: Intent,
): Promise<boolean> {
  const key = refKey(ref);
  const isYoung = surroundings.platform.clock.wallMs() - atMs < YOUNG_MS;
  if (branchLease === null || isYoung || isRefusal(key)) return false;
  const found = await coordinator.find([{ key, leaseId: null }]);
  return !found.some(({ lease, standing }) => standing === "valid" && lease.leaseId === branchLease);
}

async function settle(workspace: Workspace, session: Session, intent: Intent): Promise<Fate | null> {
  for (let look = 0; look < MOST_LOOKS; look++) {
    const seen = await refValue(workspace, intent.ref);
    // Git is asked before the mutex is taken; under it, only whether the ref is still the same.
    const fate = await fateBy(workspace, intent, seen);
    const done = await writeDown(workspace, session, intent, seen, fate);
    if (done !== "moved") return done;
  }
  return null;
}

/** PROTOCOL 18. The reflog is no witness: Git writes it before the ref. */
async function fateBy(workspace: Workspace, intent: Intent, seen: RefValue): Promise<Fate> {
  const { git } = workspace.surroundings;
  const at = seen !== null && "oid" in seen ? seen.oid : null;
  if (at === intent.new) return "committed";
  if (seen === null ? intent.old === null : at === intent.old) return "abandoned";
  if (at === null) return "unsettled";
  const { objectFormat } = workspace.repository.config;
  if (!isObjectId(objectFormat, intent.new)) return "unsettled";
  const { status } = await git.run(["merge-base", "--is-ancestor", intent.new, at], {
    cwd: workspace.repository.worktreeRoot,
  });
  return status === 0 ? "committed" : "unsettled";
}

/** Null where somebody else was faster, or where it is too early to tell. */
async function writeDown(
  workspace: Workspace,
  session: Session,
  intent: Intent,
  seen: RefValue,
  fate: Fate,
): Promise<Fate | "moved" | null> {
  const name: FactName = intentName(intent.intentId);
  let answer: Fate | "moved" | null = null;
  const requestId = fate === "abandoned" ? null : remembered(workspace, intent.requestId ?? intent.publishId);
  const written = session.write<true>([], {
    about: `${intent.noun} ${intent.ref}`,
    facts: [name],
    requestId,
    body: async ({ facts }) => {
      if (!facts.has(name)) return null;
      if (!same(await refValue(workspace, intent.ref), seen)) {
        answer = "moved";
        return null;
      }
      if (!(await clearLock(workspace, intent))) return null;
      answer = fate;
      const { claims } = intent;
      const result = {
        ref: intent.ref,
        commit: intent.new,
        fate,
        ...(claims.length === 0 ? {} : { claims }),
      };
      return {
        type: eventOf(intent.noun, fate),
        payload: {
          publish_id: intent.publishId,
          on_behalf_of: intent.agentId,
          ref: intent.ref,
          old: intent.old,
          new: intent.new,
          recovered: true,
        },
        facts: new Map([[name, null], ...(fate === "committed" ? intent.facts : [])]),
        answer: true,
        result,
      };
    },
  });
  try {
    await written;
  } catch (error) {
    // Somebody else has settled it meanwhile, with the same request id.
    const isUsed = error instanceof CotenantError && error.data["request_id"] === requestId;
    if (requestId === null || !isUsed || error.code !== "E_USAGE") throw error;
    return null;
  }
  return answer;
}

function remembered({ surroundings }: Workspace, id: Ulid): Ulid | null {
  try {
    checkRequestId(id, surroundings.platform.clock.wallMs());
    return id;
  } catch {
    return null;
  }
}

function refValue({ surroundings, repository }: Workspace, ref: string): Promise<RefValue> {
  return readRef(surroundings.platform, surroundings.git, repository, ref);
}

function same(one: RefValue, other: RefValue): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/**
 * PROTOCOL 19: a Git that was killed between `prepare` and `commit` leaves `<ref>.lock` behind, and no Git ever removes it.
 * Only under the mutex, only for this intent, whose Git is dead, and only if the file is that Git's. False: too early.
 */
async function clearLock(workspace: Workspace, intent: Intent): Promise<boolean> {
  const { surroundings, repository } = workspace;
  if (repository.config.refFormat !== "files") return true;
  if (!(await clearHeadLocks(workspace, intent))) return false;
  const { files, clock } = surroundings.platform;
  const path = `${repository.commonDir}/${intent.ref}.lock`;
  const stat = await files.lstat(path);
  if (stat === null || stat.kind !== "file") return true;
  const bytes = await files.readFile(path);
  const text = bytes === null ? "" : new TextDecoder().decode(bytes).trim();
  if (text === "" && clock.wallMs() - stat.mtimeMs < EMPTY_LOCK_MS) return false;
  if (text !== "" && text !== intent.new) return true;
  if (!(await endGit(surroundings.platform, intent))) return false;
  await files.unlink(path);
  return true;
}

/**
 * Where the branch is checked out, which only a landing moves, Git locks that worktree's HEAD along with it, for the reflog:
 * with an empty file. As that says nothing of whose it is, it goes only once it has been there for longer than any Git
 * takes to write to it. False: too early.
 */
async function clearHeadLocks(workspace: Workspace, intent: Intent): Promise<boolean> {
  const { platform } = workspace.surroundings;
  for (const { path, mtimeMs } of await emptyHeadLocks(workspace, intent.ref)) {
    if (platform.clock.wallMs() - mtimeMs < EMPTY_LOCK_MS) return false;
    if (!(await endGit(platform, intent))) return false;
    await platform.files.unlink(path);
  }
  return true;
}

/** Of the worktrees that are on a branch. */
export async function emptyHeadLocks(
  { surroundings, repository }: Workspace,
  ref: string,
): Promise<{ readonly path: string; readonly mtimeMs: number }[]> {
  if (repository.config.refFormat !== "files") return [];
  const { platform, git } = surroundings;
  const found: { readonly path: string; readonly mtimeMs: number }[] = [];
  for (const { gitDir } of await usesOf(platform, git, repository, ref)) {
    const path = joinPath(gitDir, "HEAD.lock");
    const stat = await platform.files.lstat(path);
    if (stat?.kind === "file" && stat.size === 0) found.push({ path, mtimeMs: stat.mtimeMs });
  }
  return found;
}

/** Of a publisher that was stopped: its Git still holds the branch's lock. */
async function endGit({ processes, timers }: Platform, { git }: Intent): Promise<boolean> {
  for (let look = 0; look < MOST_LOOKS_AT_GIT; look++) {
    if ((await processes.liveness(git)) === "dead") return true;
    await processes.end(git);
    await timers.sleep(10).done;
  }
  return false;
}
