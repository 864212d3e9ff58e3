import type { FactName } from "../../kernel/facts";
import type { AgentId } from "../../kernel/ids";
import type { Lease } from "../../kernel/lease";
import { allowedSaying, canTell, type Verdict } from "./answers";
import { type Checking, hooksWord, shellDirectory } from "./check";
import { placesOf, releaseCommitted, wake } from "./life";
import { hasHeard, newsFor } from "./news";
import { noteFile, notesOf } from "./shell/notes";
import { hasStopped } from "./small-files";
import { GUARD_VIOLATION, type GuardViolation, guardViolations, settleViolations } from "./violations";
import type { GuardedWorktree } from "./worktree";

/** After a tool, or when a person speaks: what the session has committed is given back, and it hears what is new. */
export async function after(checking: Checking): Promise<Verdict> {
  const { world, report } = checking;
  const { places, failures } = await placesOf(world, report);
  const word = await hooksWord(
    checking,
    places.map(({ repository }) => repository),
  );
  const tells: string[] = word === null ? [] : [word];
  const wish = report.moment === "after" ? checking.wish : null;
  const command = wish?.kind === "shell" ? wish.command : null;
  if (wish?.kind === "shell") {
    const { compare } = await import("./shell/compare");
    const { violations, ruled } = await compare(checking, shellDirectory(checking, wish), wish.command);
    if (ruled !== null) tells.push(ruled);
    for (const { path, owner } of violations) tells.push(violationText(path, owner, "your command ran"));
  }
  for (const place of places) {
    tells.push(...(await background(checking, place, command)));
    if (report.moment === "prompt" || (await hasStopped(place))) await wake(place);
    const committed = await releaseCommitted(place, null);
    const news = canTell(report) ? await newsFor(place) : null;
    if (news !== null) tells.push(news);
    if (committed.length > 0) await settleHeard(place, committed);
  }
  if (failures.length > 0) {
    const { noteFailure } = await import("./failure");
    await noteFailure(checking, failures[0]);
  }
  return allowedSaying(...tells);
}

/** Whoever has heard that its file was changed, and has committed it, has looked at it. */
async function settleHeard(place: GuardedWorktree, committed: readonly Lease[]): Promise<void> {
  const { coordinator, session } = place;
  if ((await coordinator.glance([GUARD_VIOLATION])).length === 0) return;
  const ids = new Set(committed.map(({ leaseId }) => leaseId));
  const heard: [FactName, GuardViolation][] = [];
  for (const [name, violation] of await guardViolations(coordinator))
    if (ids.has(violation.leaseId) && (await hasHeard(place, name, violation))) heard.push([name, violation]);
  if (heard.length > 0) await settleViolations(session, heard, "committed");
}

/** What the session's commands have done since they were answered. */
export async function background(
  checking: Checking,
  place: GuardedWorktree,
  command: string | null = null,
): Promise<string[]> {
  const { moment, isBorrowed } = checking.report;
  // Whoever cannot tell the agent leaves it to the other report of the same event.
  if (isBorrowed || (await notesOf(place, place.who.sessionId)).length === 0) return [];
  const { compareAgain } = await import("./shell/compare");
  const isEnd = moment === "end" || moment === "failure";
  const { violations, ruled } = await compareAgain(place, {
    isTurnOver: isEnd || moment === "stop" || moment === "prompt",
    isEnd,
    except: command === null ? null : noteFile(place, checking, command),
  });
  const tells = violations.map(({ path, owner, command }) =>
    violationText(path, owner, `"${command}", a command of yours, ran in the background`),
  );
  return ruled === null ? tells : [...tells, ruled];
}

function violationText(path: string, owner: AgentId, during: string): string {
  return `cotenant: ${path} changed while ${during}, and ${owner} holds it. It is on record; tell the person you work for, and leave the file alone.`;
}
