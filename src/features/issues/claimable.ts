import type { Acquired, Session } from "../../coordinator/session";
import { CotenantError } from "../../errors/cotenant-error";
import type { Ulid } from "../../kernel/ids";
import { andMore } from "../../kernel/printing";
import { takeBackHint } from "./lost";
import { isTerminal } from "./model";
import type { IssueReader } from "./reader";
import { type FoundIssue, isFound } from "./resolve";

/** On which terms somebody wants to claim an issue. */
export interface ClaimTerms {
  /** Also one that is over, to bring it back. */
  readonly isReopening?: boolean | undefined;
  /** Only what is ready, or was left. */
  readonly onlyIfReady?: boolean | undefined;
  /** Also while it waits for something: somebody has said why. */
  readonly allowsBlocked?: boolean | undefined;
}

/** Whether it may be claimed at all, whoever asks; who holds it is for the claim itself to find out. */
export async function refuseUnclaimable(
  reader: IssueReader,
  found: FoundIssue,
  terms: ClaimTerms,
): Promise<void> {
  const { id, state, ahead } = found;
  if (isTerminal({ state }) && terms.isReopening !== true) {
    const where = ahead === null ? "" : ` (written by ${ahead.agentId} in ${ahead.worktreeId})`;
    throw new CotenantError("E_TERMINAL_STATE", `issue ${id} is ${state}${where}`, {
      ...(ahead === null ? {} : { hint: `if the branch with that was thrown away: ${takeBackHint(id)}` }),
      data: { id, state },
    });
  }
  // Written in progress and held by nobody, it was left: that is as good as ready.
  if (terms.onlyIfReady === true && state !== "ready" && state !== "in_progress")
    throw new CotenantError("E_POLICY", `issue ${id} is ${state}, not ready`, {
      hint: "leave out --if-ready, or pick one that is ready",
      data: { id, state },
    });
  if (terms.allowsBlocked !== true && !isTerminal({ state }))
    refuseOpenNeeds(id, await openNeeds(reader, found.dependencies), "claimed");
}

/**
 * Asks once more when the claim is granted. Until then others could finish the issue, delete it or add something that it
 * waits for; from then on nobody can. What may not be claimed any more is given back.
 */
export async function confirmClaim(
  session: Pick<Session, "release">,
  grant: Acquired,
  refuse: () => Promise<unknown>,
): Promise<void> {
  if (grant.replayed || !grant.isNew) return;
  try {
    await refuse();
  } catch (error) {
    // It runs out by itself otherwise; why there is no claim is what has to be said.
    await session.release(grant.fresh.map(({ key, leaseId }) => ({ key, leaseId }))).catch(() => {});
    throw error;
  }
}

/** Which of these dependencies are not over. One that nobody has, or that nobody can read, is not. */
export async function openNeeds(reader: IssueReader, dependencies: readonly string[]): Promise<string[]> {
  if (dependencies.length === 0) return [];
  const found = await reader.findNamed(dependencies);
  return dependencies.filter((id) => {
    const needed = found.get(id) ?? null;
    return !(isFound(needed) && (needed.isDeleted || isTerminal(needed)));
  });
}

/**
 * For a write that finishes an issue: what it needs is looked up before the mutex, which must not wait for Git, and
 * judged under it, with what it needs by then.
 */
export async function finishCheck(reader: IssueReader, id: Ulid): Promise<(current: FoundIssue) => void> {
  const found = await reader.find(id);
  const known = isFound(found) ? found.dependencies : [];
  const open = new Set(await openNeeds(reader, known));
  const isOver = (needed: string) => known.includes(needed) && !open.has(needed);
  return ({ issue, dependencies }) => {
    if (issue.state === "done") return;
    refuseOpenNeeds(
      id,
      dependencies.filter((needed) => !isOver(needed)),
      "done",
    );
  };
}

/** An issue that waits for another is neither claimed nor done, unless somebody says why. */
export function refuseOpenNeeds(id: Ulid, open: readonly string[], verb: "claimed" | "done"): void {
  const [first] = open;
  if (first === undefined) return;
  const more = andMore(open.length - 1);
  throw new CotenantError("E_POLICY", `issue ${id} cannot be ${verb}: it waits for ${first}${more}`, {
    hint: `finish that first ('cotenant issue show ${first}'), or add --allow-blocked --reason <text>`,
    data: { id, blocked_by: open },
  });
}
