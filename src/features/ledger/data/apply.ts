import type { Session } from "../../../coordinator/session";
import type { Fact, FactName } from "../../../kernel/facts";
import { NOBODYS_ID, type Ulid } from "../../../kernel/ids";
import type { Platform } from "../../../platform/platform";
import type { Intention, Standing } from "../../../store/guarded-write";
import { IssueFolder } from "../../issues/folder";
import { decodeIssue } from "../../issues/model";
import { type Addition, EVENTS, stampFromFact, stampName, stampToFact } from "../../issues/stamps";
import type { IssueWrite } from "./plan";

/** Written in one critical section: it is held for as long as they take. */
const AT_ONCE = 50;

export interface Applied {
  readonly written: readonly Ulid[];
  /** Changed while the merge was made: the next sync does it. */
  readonly moved: readonly Ulid[];
}

/** Brings what came from the ledger into the worktree, as guarded writes: logged, stamped, and finished after a crash. */
export async function applyHere(
  session: Session,
  platform: Platform,
  root: string,
  writes: readonly IssueWrite[],
  events: readonly string[],
): Promise<Applied> {
  const folder = new IssueFolder(platform, root);
  const written: Ulid[] = [];
  const moved: Ulid[] = [];
  for (let at = 0; at < writes.length; at += AT_ONCE) {
    const some = writes.slice(at, at + AT_ONCE);
    await session.write([], {
      about: `${some.length} ${some.length === 1 ? "issue" : "issues"} from the ledger`,
      facts: some.map(({ id }) => stampName(id)),
      body: async (standing) => {
        const ready: IssueWrite[] = [];
        for (const write of some) {
          if (await isUnmoved(folder, write)) ready.push(write);
          else moved.push(write.id);
        }
        written.push(...ready.map(({ id }) => id));
        return ready.length === 0 ? null : intention(folder, platform, session, ready, standing);
      },
    });
  }
  if (events.length > 0) await folder.add(NOBODYS_ID, EVENTS, events);
  return { written, moved };
}

async function isUnmoved(folder: IssueFolder, { id, text }: IssueWrite): Promise<boolean> {
  return text === null || ((await folder.read(id))?.text ?? null) === text.expected;
}

async function intention(
  folder: IssueFolder,
  platform: Platform,
  session: Session,
  writes: readonly IssueWrite[],
  standing: Standing,
): Promise<Intention<true>> {
  const facts = new Map<FactName, Fact | null>();
  await folder.stageAll(writes.flatMap(({ id, text }) => (text === null ? [] : [{ id, text: text.next }])));
  for (const { id, text, lines } of writes) {
    if (text === null) continue;
    const reading = decodeIssue(text.next);
    const before = standing.facts.get(stampName(id))?.value;
    const known = before === undefined ? null : stampFromFact(before);
    if (!("issue" in reading) || (known !== null && known.version >= reading.issue.stamp.version)) continue;
    const { issue } = reading;
    facts.set(
      stampName(id),
      stampToFact({
        version: issue.stamp.version,
        digest: platform.digest.sha256(text.next),
        state: issue.state,
        isDeleted: issue.deleted_at !== null,
        worktreeId: session.actor.worktreeId,
        agentId: issue.updated_by,
        at: issue.updated_at,
        additions: withinLimits(additionsOf(lines)),
      }),
    );
  }
  const logged = writes.map(({ id, text, lines }) => ({
    id,
    digest: text === null ? null : platform.digest.sha256(text.next),
    additions: additionsOf(lines),
  }));
  return {
    type: "sync.merged",
    payload: { issue_ids: writes.map(({ id }) => id) },
    facts,
    carryOut: () => folder.carryOutAll(logged),
    settle: () => folder.settleAll(logged),
    answer: true,
  };
}

function additionsOf(lines: IssueWrite["lines"]): Addition[] {
  return lines.flatMap(({ file, lines: added }) => added.map((line) => ({ file, line })));
}

/** They only help to finish a write after a crash, which the next sync does as well. */
function withinLimits(additions: readonly Addition[]): readonly Addition[] {
  const size = additions.reduce((sum, { line }) => sum + line.length, 0);
  return size > 4_000 ? [] : additions;
}
