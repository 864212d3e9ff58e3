import type { Workspace } from "../../coordinator/workspace";
import type { PathChange } from "../../git/commit-text";
import { type ChangingCommit, CommitReader } from "../../git/commits";
import { commitOf } from "./divergence";

/** Whether Git is in the middle of making commits anew. */
export async function isReplaying({ repository, surroundings }: Workspace): Promise<boolean> {
  const { files } = surroundings.platform;
  for (const name of ["rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD", "sequencer"])
    if ((await files.stat(`${repository.gitDir}/${name}`)) !== null) return true;
  return false;
}

/** Asks of a change whether it is only made anew. `authoredAtMs` is null before it is committed. */
export type Replay = (change: PathChange, authoredAtMs: number | null) => boolean;

const NOTHING: Replay = () => false;

/**
 * What a rebase, a cherry-pick or a revert makes anew was judged when it was first committed. Whoever commits something else
 * while Git waits for them changes other paths, or changes them otherwise, or says another time.
 */
export async function replayAt(workspace: Workspace): Promise<Replay> {
  if (!(await isReplaying(workspace))) return NOTHING;
  const { repository, surroundings } = workspace;
  const { git } = surroundings;
  const place = { cwd: repository.worktreeRoot };
  const read = async (names: readonly string[]) => {
    const found = await Promise.all(names.map((name) => commitOf(git, place.cwd, name)));
    const oids = [...new Set(found.filter((oid) => oid !== null))];
    return oids.length === 0
      ? []
      : new CommitReader(git, place).changing({ names: oids, options: ["--no-walk"] });
  };
  const { amended, stopped, steps } = await rebaseAt(workspace);
  // The next commit is to be one of these, settled by hand where they were in conflict.
  const settled = await read(["CHERRY_PICK_HEAD", "REVERT_HEAD", ...(amended === null ? stopped : [])]);
  // Git has made this one, and lets a person change it: what is as it was is not theirs.
  const offered = amended === null ? [] : await read([amended]);
  const running = amended === null && stopped.length === 0 ? await read(steps) : [];
  return ({ path, oid }, authoredAtMs) =>
    touches(settled, path) ||
    offered.some(({ changes }) => changes.some((change) => change.path === path && change.oid === oid)) ||
    touches(
      running.filter((commit) => commit.authoredAtMs === authoredAtMs),
      path,
    );
}

function touches(commits: readonly ChangingCommit[], path: string): boolean {
  return commits.some(({ changes }) => changes.some((change) => change.path === path));
}

interface RebaseAt {
  /** The commit that a person was asked to change. */
  readonly amended: string | null;
  /** The commit that could not be made without a person. */
  readonly stopped: readonly string[];
  /** Those of the step that it has come to. */
  readonly steps: readonly string[];
}

const STEP = /^(pick|p|reword|r|edit|e|squash|s|fixup|f|merge|m)(?: -[cC])? ([0-9a-f]{4,64})(?: |$)/;

async function rebaseAt({ repository, surroundings }: Workspace): Promise<RebaseAt> {
  const { files } = surroundings.platform;
  const text = async (name: string) => {
    const bytes = await files.readFile(`${repository.gitDir}/${name}`);
    return bytes === null ? "" : new TextDecoder().decode(bytes).trim();
  };
  const names = async (...paths: string[]) =>
    (await Promise.all(paths.map(text))).filter((name) => /^[0-9a-f]{4,64}$/.test(name));
  const done = (await text("rebase-merge/done")).split("\n").flatMap((line) => {
    const found = STEP.exec(line);
    return found === null ? [] : [{ isMelted: /^[sf]/.test(found[1]!), oid: found[2]! }];
  });
  const last = done.findLastIndex(({ isMelted }) => !isMelted);
  const [amended = null] = await names("rebase-merge/amend");
  return {
    amended,
    stopped: await names("rebase-merge/stopped-sha", "rebase-apply/original-commit"),
    steps: done.slice(Math.max(0, last)).map(({ oid }) => oid),
  };
}
