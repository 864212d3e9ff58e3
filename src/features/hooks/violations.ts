import type { Coordinator } from "../../coordinator/contract";
import type { Session } from "../../coordinator/session";
import { type Fact, type FactName, factName } from "../../kernel/facts";
import { printable } from "../../kernel/ids";
import type { Git } from "../../platform/git";
import { commentsOf, issueOf, type Objection } from "./commit-rules";

/** A commit that the hooks would have refused, and that was made all the same. */
export interface Violation {
  readonly commit: string;
  readonly agentId: string;
  readonly at: string;
  readonly objections: readonly {
    readonly path: string;
    readonly message: string;
    readonly owner: string | null;
    /** Only of a rule of paths: all else is about leases. */
    readonly code?: "E_PATH_RULE";
  }[];
}

const VIOLATION_KIND = "violation";
const MOST_KEPT = 20;

function violationName(commit: string): FactName {
  return factName(VIOLATION_KIND, commit);
}

/** On record, for `status`, `stats` and the next push. */
export async function recordViolation(
  session: Session,
  commit: string,
  objections: readonly Objection[],
): Promise<void> {
  const kept = objections.slice(0, MOST_KEPT).map(({ path, message, owner, code }) => ({
    path: path.slice(0, 300),
    message: message.slice(0, 300),
    owner,
    ...(code === "E_PATH_RULE" ? { code } : {}),
  }));
  await session.write([], {
    about: `commit ${commit}`,
    facts: [violationName(commit)],
    body: async ({ facts, now }) => {
      if (facts.has(violationName(commit))) return null;
      const at = new Date(now.wallMs).toISOString();
      const fact: Fact = { commit, agent_id: session.actor.agentId, at, objections: kept };
      return {
        type: "policy.violated",
        payload: {
          commit,
          paths: kept.map(({ path }) => path),
          owners: [...new Set(kept.map(({ owner }) => owner))],
        },
        facts: new Map([[violationName(commit), fact]]),
        answer: true,
      };
    },
  });
}

/** An objection, for whoever reads it later: what was held when the commit was made may be free by now. */
export function objectionThen({ path, message, owner }: Violation["objections"][number]): string {
  if (owner === null) return printable(message, 300);
  const issueId = issueOf(path) ?? commentsOf(path);
  const held = issueId === null ? `${printable(path, 200)} was held` : `issue ${issueId} was claimed`;
  return `${held} by ${printable(owner)} at that time`;
}

/** All that are on record, by commit. */
export async function recordedViolations(coordinator: Coordinator): Promise<ReadonlyMap<string, Violation>> {
  const facts = await coordinator.facts({ kinds: [VIOLATION_KIND] });
  const violations = [...facts.values()].flatMap(({ value }) => violationFrom(value) ?? []);
  return new Map(violations.map((violation) => [violation.commit, violation]));
}

/** For how long people are reminded of one. */
const REMINDED_MS = 7 * 24 * 3600 * 1000;
/** For how long it is remembered apart from the log. */
const REMEMBERED_MS = 30 * 24 * 3600 * 1000;

/** Those that people are reminded of: not long ago, and neither taken back nor pushed since. */
export async function openViolations(
  coordinator: Coordinator,
  nowMs: number,
  git: Git,
  cwd: string,
): Promise<Violation[]> {
  const recent = [...(await recordedViolations(coordinator)).values()].filter(
    ({ at }) => Date.parse(at) > nowMs - REMINDED_MS,
  );
  const open: Violation[] = [];
  for (const violation of recent) if (!(await isSettled(git, cwd, violation.commit))) open.push(violation);
  return open;
}

/** Our own refs keep what nobody has any more. */
const ALL = ["--exclude=refs/cotenant/*", "--exclude=refs/stash", "--all"];

/** In no branch and under no HEAD of a worktree any more; or on the remote, where others have it. In doubt it is open. */
async function isSettled(git: Git, cwd: string, commit: string): Promise<boolean> {
  const lookFor = (among: readonly string[]) =>
    git.run(["rev-list", "--max-count=1", commit, "--not", ...among], { cwd, timeoutMs: 60_000 });
  const here = await lookFor(ALL);
  if (here.status !== 0) return /bad object/.test(here.stderr);
  if (here.stdout.length > 0) return true;
  const there = await lookFor(["--remotes"]);
  return there.status === 0 && there.stdout.length === 0;
}

/** What is old enough to be left to the log and its archive. */
export async function forgetOldViolations(session: Session, nowMs: number): Promise<number> {
  const facts = await session.coordinator.facts({ kinds: [VIOLATION_KIND] });
  const old = [...facts].filter(
    ([, { value }]) => !(Date.parse(String(value["at"])) > nowMs - REMEMBERED_MS),
  );
  if (old.length === 0) return 0;
  await session.write([], {
    about: "old violations",
    facts: [],
    body: async () => ({
      type: "policy.forgotten",
      payload: { violations: old.length },
      facts: new Map(old.slice(0, 500).map(([name]) => [name, null])),
      answer: true,
    }),
  });
  return old.length;
}

function violationFrom(fact: Fact): Violation | null {
  const { commit, agent_id: agentId, at, objections } = fact;
  if (typeof commit !== "string" || !Array.isArray(objections)) return null;
  return { commit, agentId: String(agentId ?? ""), at: String(at ?? ""), objections };
}
