import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { ObjectId } from "../../git/object-name";
import { decode } from "../../identity/path-text";
import { printable } from "../../kernel/ids";
import { shellWord } from "../../kernel/printing";
import { isCutOff } from "../../platform/git";
import { tipOf } from "../publish/base";
import { branchName } from "../publish/branch-rules";
import { fetchedTip, isAncestor } from "../publish/catching-up";
import { silent } from "../publish/push";
import { noTarget, shownBranch } from "./target";

/** On what the next entry is put, and where the target is here and there. */
export interface Base {
  readonly tip: ObjectId;
  readonly local: ObjectId | null;
  /** Null where the remote has no such branch; undefined where nothing is pushed. */
  readonly theirs: ObjectId | null | undefined;
}

export async function baseOf(workspace: Workspace, target: string, remote: string | null): Promise<Base> {
  const local = await tipOf(workspace, target);
  if (remote === null) {
    if (local === null) throw noTarget(target);
    return { tip: local, local, theirs: undefined };
  }
  const theirs = await remoteTip(workspace, remote, target);
  if (local === null && theirs === null) throw noTarget(target);
  if (theirs === null) return { tip: local!, local, theirs };
  if (local === null || (await isAncestor(workspace, local, theirs))) return { tip: theirs, local, theirs };
  const isAhead = await isAncestor(workspace, theirs, local);
  if (isAhead && (await areLandings(workspace, theirs, local))) return { tip: local, local, theirs };
  throw apart(target, remote, isAhead);
}

function apart(target: string, remote: string, isAhead: boolean): CotenantError {
  const [name, there] = [shownBranch(target), `${printable(remote, 100)}/${shownBranch(target)}`];
  const what = isAhead
    ? `has commits that ${there} lacks, and that did not land there`
    : `and ${there} have diverged`;
  return new CotenantError("E_DIVERGED", `${name} ${what}`, {
    hint: `look at them: git log ${shellWord(`${remote}/${branchName(target)}..${branchName(target)}`)}; push them or move them to a branch of their own, then run it again`,
    data: { target, remote },
  });
}

/** Whether everything that the remote lacks came there by this queue: then it goes with the next push. */
async function areLandings(
  { surroundings, repository }: Workspace,
  from: ObjectId,
  to: ObjectId,
): Promise<boolean> {
  const args = ["log", "--first-parent", "-z", "--format=%B", `${from}..${to}`, "--"];
  const { stdout } = await surroundings.git.run(args, { cwd: repository.worktreeRoot });
  const messages = decode(stdout)
    .split("\0")
    .filter((message) => message.trim() !== "");
  return messages.every((message) => /^Cotenant-Landed: \S/m.test(message));
}

/** The remote's branch as it is now; null where it has none. */
export async function remoteTip(workspace: Workspace, remote: string, ref: string): Promise<ObjectId | null> {
  const tip = await fetchedTip(workspace, remote, ref);
  if (tip !== null) return tip;
  const { surroundings, repository, config } = workspace;
  try {
    const { status } = await surroundings.git.run(
      ["ls-remote", "--exit-code", "--end-of-options", remote, ref],
      {
        cwd: repository.worktreeRoot,
        env: await silent(workspace),
        timeoutMs: config.values["publish.push_timeout_secs"] * 1000,
      },
    );
    // Git's own number for "asked, and there is none".
    if (status === 2) return null;
  } catch (error) {
    if (!isCutOff(error)) throw error;
  }
  throw new CotenantError(
    "E_REMOTE_UNREACHABLE",
    `${printable(remote, 100)} cannot be asked where ${shownBranch(ref)} is`,
    {
      hint: "run the queue again when it can be reached; the entries stay",
      data: { remote, ref },
    },
  );
}
