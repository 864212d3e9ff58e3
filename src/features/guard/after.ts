import type { FactName } from "../../kernel/facts";
import type { Lease } from "../../kernel/lease";
import { ALLOWED, canTell, type Verdict } from "./answers";
import { background, trespassed } from "./background";
import { type Checking, hooksWord } from "./check";
import { placesOf, releaseCommitted, wake } from "./life";
import { hasHeard, newsFor } from "./news";
import type { Place } from "./place";
import { wishOf } from "./tools";
import { hasStopped } from "./traces";
import { GUARD_VIOLATION, type GuardViolation, guardViolations, settleViolations } from "./violations";

/** After a tool, or when a person speaks: what the session has committed is given back, and it hears what is new. */
export async function after(checking: Checking): Promise<Verdict> {
  const { world, report } = checking;
  const places = await placesOf(world, report);
  const word = await hooksWord(
    checking,
    places.map(({ repository }) => repository),
  );
  const tells: string[] = word === null ? [] : [word];
  const wish = report.moment === "after" ? wishOf(report) : null;
  const command = wish?.kind === "shell" ? wish.command : null;
  if (wish?.kind === "shell") {
    const { compare } = await import("./shell/compare");
    const { shellDirectory } = await import("./shell/directory");
    const { violations, ruled } = await compare(checking, shellDirectory(checking, wish), wish.command);
    if (ruled !== null) tells.push(ruled);
    for (const { path, owner } of violations) tells.push(trespassed(path, owner, "your command ran"));
  }
  for (const place of places) {
    tells.push(...(await background(checking, place, command)));
    if (report.moment === "prompt" || (await hasStopped(place))) await wake(place);
    const committed = await releaseCommitted(place, null);
    const news = canTell(report) ? await newsFor(place) : null;
    if (news !== null) tells.push(news);
    if (committed.length > 0) await settleHeard(place, committed);
  }
  return tells.length === 0 ? ALLOWED : { isAllowed: true, tell: tells.join("\n") };
}

/** Whoever has heard that its file was changed, and has committed it, has looked at it. */
async function settleHeard(place: Place, committed: readonly Lease[]): Promise<void> {
  const { coordinator, session } = place;
  if ((await coordinator.glance([GUARD_VIOLATION])).length === 0) return;
  const ids = new Set(committed.map(({ leaseId }) => leaseId));
  const heard: [FactName, GuardViolation][] = [];
  for (const [name, violation] of await guardViolations(coordinator))
    if (ids.has(violation.leaseId) && (await hasHeard(place, name, violation))) heard.push([name, violation]);
  if (heard.length > 0) await settleViolations(session, heard, "committed");
}
