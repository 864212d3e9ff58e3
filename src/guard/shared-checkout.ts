import { dirKey, kindOf } from "../kernel/keys";
import { belongsTo, type Lease } from "../kernel/lease";
import { isRefusal } from "../kernel/refusal";
import { ALLOWED, type Verdict } from "./answers";
import type { Checking } from "./check";
import { strayed } from "./home";
import { openPlace, type Place, repositoryOf } from "./place";
import type { Everybody } from "./shell/arguments";
import type { ShellWrite } from "./shell/walk";
import { whoIs } from "./who";
import { sharedByOthers } from "./words";
import { othersOn, wantingIn, withoutYielding } from "./yielding";

/** Leases whose holder works in the checkout that they were taken in. */
const AT_WORK = ["file", "dir", "worktree", "issue"];

/**
 * HEAD, the index, the stash and the working tree as a whole belong to everybody who works in a checkout: a command that
 * moves them is refused while another session does. Nobody waits for it: others may work there for hours, and a worktree
 * of one's own is to be had at once.
 */
export async function checkShared(checking: Checking, writes: readonly ShellWrite[]): Promise<Verdict> {
  const uses = writes.flatMap(({ everybody, cwd }) =>
    everybody === undefined || cwd === null ? [] : [{ everybody, cwd }],
  );
  if (uses.length === 0) return ALLOWED;
  const who = checking.who ?? (await whoIs(checking.world, checking.report));
  const tells: string[] = [];
  for (const { everybody, cwd } of uses) {
    const repository = await repositoryOf(checking.world, cwd);
    if (repository === null) continue;
    const place = await openPlace(checking.world, repository, who);
    const away = await strayed(checking, place, everybody.command);
    if (away !== null && !away.isAllowed) return away;
    if (away?.tell != null) tells.push(away.tell);
    const verdict = await judge(place, everybody);
    if (!verdict.isAllowed) return verdict;
  }
  return tells.length === 0 ? ALLOWED : { isAllowed: true, tell: tells.join("\n") };
}

async function judge(place: Place, use: Everybody): Promise<Verdict> {
  const others = await othersAtWork(place);
  if (others.length === 0) return ALLOWED;
  const { who, repository } = place;
  const base = use.base !== null && (await isCommit(place, use.base)) ? use.base : null;
  const words = sharedByOthers({ ...use, base }, others, repository.worktreeRoot, who.sessionId);
  return { isAllowed: false, ...words };
}

/** One word of a checkout may be a path as well. */
async function isCommit({ world, repository }: Place, word: string): Promise<boolean> {
  const args = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${word}^{commit}`];
  return (await world.git.run(args, { cwd: repository.worktreeRoot })).status === 0;
}

/** What others hold from this very worktree, or in it. */
async function othersAtWork(place: Place): Promise<Lease[]> {
  const { coordinator, worktreeId, who, session } = place;
  const whole = dirKey(".");
  const wanting = wantingIn(place);
  const inside = isRefusal(whole) ? [] : await othersOn(coordinator, wanting, [whole]);
  const counting = await withoutYielding(coordinator, wanting, inside);
  const fromHere = (await coordinator.list()).filter(
    ({ lease }) =>
      lease.worktreeId === worktreeId &&
      lease.sessionId !== who.sessionId &&
      AT_WORK.includes(kindOf(lease.key)) &&
      !belongsTo(lease, session.actor),
  );
  return [...new Map([...counting, ...fromHere].map(({ lease }) => [lease.leaseId, lease])).values()];
}
