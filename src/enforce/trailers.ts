/** Which claim a commit's change of an issue rests on. */
export interface Trailer {
  readonly issueId: string;
  readonly leaseId: string | null;
  readonly token: number | null;
}

export interface Trailers {
  readonly agentId: string | null;
  readonly worktreeId: string | null;
  readonly issues: readonly Trailer[];
}

const NONE = "none";

/** In the order in which they stand: an issue, then the lease and the token that belong to it. */
export function trailerLines({ agentId, worktreeId, issues }: Trailers): string[] {
  if (issues.length === 0) return [];
  return [
    ...issues.flatMap(({ issueId, leaseId, token }) => [
      `Cotenant-Issue: ${issueId}`,
      `Cotenant-Lease: ${leaseId ?? NONE}`,
      `Cotenant-Token: ${token ?? NONE}`,
    ]),
    ...(agentId === null ? [] : [`Cotenant-Agent: ${agentId}`]),
    ...(worktreeId === null ? [] : [`Cotenant-Worktree: ${worktreeId}`]),
  ];
}

const LINE = /^Cotenant-(Issue|Lease|Token|Agent|Worktree):[ \t]*(.*?)[ \t]*$/;

/** What a message says, as Git prints its trailers. Whoever wrote it may have written anything. */
export function parseTrailers(text: string): Trailers {
  const issues: { issueId: string; leaseId: string | null; token: number | null }[] = [];
  let agentId: string | null = null;
  let worktreeId: string | null = null;
  for (const line of text.split("\n")) {
    const found = LINE.exec(line);
    if (found === null) continue;
    const [, name, value = ""] = found;
    const last = issues.at(-1);
    if (name === "Issue") issues.push({ issueId: value, leaseId: null, token: null });
    else if (name === "Lease" && last !== undefined) last.leaseId = value === NONE ? null : value;
    else if (name === "Token" && last !== undefined)
      last.token = /^\d{1,15}$/.test(value) ? Number(value) : null;
    else if (name === "Agent") agentId = value;
    else if (name === "Worktree") worktreeId = value;
  }
  return { agentId, worktreeId, issues };
}

/** A message without ours, so that they can be written anew: of an amended or reused one. */
export function withoutTrailers(message: string): string {
  return message
    .split("\n")
    .filter((line) => !LINE.test(line))
    .join("\n");
}
