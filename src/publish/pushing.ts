import type { Workspace } from "../coordinator/workspace";
import { mainRemote } from "../enforce/divergence";
import { CotenantError } from "../errors/cotenant-error";
import type { ErrorCode } from "../errors/registry";
import { printable } from "../kernel/ids";
import type { ObjectId } from "../objects/object-name";
import { type GitResult, isCutOff } from "../platform/git";
import { isUnsent } from "../platform/git-answers";
import { branchName } from "./branch-rules";

export type PushResult =
  /** It is on the remote. */
  | { readonly result: "pushed" | "verified"; readonly remote: string }
  | { readonly result: "failed"; readonly remote: string; readonly code: ErrorCode; readonly why: string }
  /** The remote could not be asked either. */
  | { readonly result: "unknown"; readonly remote: string; readonly why: string };

const LOOK_MS = 20_000;

/** `--remote`, else the branch's own, else `origin`, else the only one there is. */
export async function remoteFor(workspace: Workspace, typed: string | null, ref: string): Promise<string> {
  const { git } = workspace.surroundings;
  const cwd = workspace.repository.worktreeRoot;
  const own = await git.run(["config", "--get", `branch.${branchName(ref)}.remote`], { cwd });
  const configured = new TextDecoder().decode(own.stdout).trim();
  const name = typed ?? (configured !== "" && configured !== "." ? configured : await mainRemote(git, cwd));
  const names = new TextDecoder().decode((await git.run(["remote"], { cwd })).stdout).split("\n");
  if (name !== null && names.includes(name)) return name;
  throw new CotenantError(
    "E_NOT_FOUND",
    name === null ? "there is no remote to push to" : `there is no remote "${printable(name)}"`,
    { hint: "'git remote -v' shows them; name one with --remote", data: { remote: name } },
  );
}

/**
 * Pushes the branch as it is now, which has the commit in it. Never asks anybody anything; where the answer is lost, the
 * remote is asked what became of it.
 */
export async function push(
  workspace: Workspace,
  remote: string,
  ref: string,
  commit: ObjectId,
): Promise<PushResult> {
  const { git } = workspace.surroundings;
  const cwd = workspace.repository.worktreeRoot;
  const env = await silent(workspace);
  const timeoutMs = workspace.config.values["publish.push_timeout_secs"] * 1000;
  let said: GitResult | null = null;
  let why = "";
  try {
    said = await git.run(
      ["push", "--porcelain", "--no-progress", "--end-of-options", remote, `${ref}:${ref}`],
      {
        cwd,
        env,
        timeoutMs,
      },
    );
    if (said.status === 0) return { result: "pushed", remote };
    why = reasonOf(said);
  } catch (error) {
    if (!isCutOff(error)) throw error;
    why = error.message;
  }
  // Rejected is a clear answer. Anything else may have happened after the remote had it.
  if (said !== null && /^!\t(?!.*\[remote failure\])/m.test(new TextDecoder().decode(said.stdout)))
    return { result: "failed", remote, code: "E_PUSH_REJECTED", why };
  const there = await lookAtRemote(workspace, remote, ref, commit, env, Math.min(LOOK_MS, timeoutMs));
  if (there === true) return { result: "verified", remote };
  if (there === null) {
    if (said === null || !isUnsent(said.stderr)) return { result: "unknown", remote, why };
    return { result: "failed", remote, code: failureCode(said.stderr), why };
  }
  return { result: "failed", remote, code: failureCode(said?.stderr ?? ""), why };
}

/** Whether the remote's branch has the commit; null where it cannot be told. */
async function lookAtRemote(
  workspace: Workspace,
  remote: string,
  ref: string,
  commit: ObjectId,
  env: Record<string, string>,
  timeoutMs: number,
): Promise<boolean | null> {
  const { git } = workspace.surroundings;
  const cwd = workspace.repository.worktreeRoot;
  try {
    const seen = await git.run(["ls-remote", "--refs", "--end-of-options", remote, ref], {
      cwd,
      env,
      timeoutMs,
    });
    if (seen.status !== 0) return null;
    const [at = ""] = new TextDecoder().decode(seen.stdout).split("\t");
    if (at === "" || at === commit) return at === commit;
    const { status } = await git.run(["merge-base", "--is-ancestor", commit, at], { cwd });
    // 128: what the remote has is not here, so nobody can tell what is in it.
    return status === 0 ? true : status === 1 ? false : null;
  } catch (error) {
    if (isCutOff(error)) return null;
    throw error;
  }
}

/** Nothing may ask: not Git, not its helpers, not SSH. Where somebody chose an SSH of their own, it is used as it is. */
async function silent({ surroundings, repository }: Workspace): Promise<Record<string, string>> {
  const { env, git } = surroundings;
  const own: Record<string, string> = {
    GIT_ASKPASS: "false",
    SSH_ASKPASS_REQUIRE: "never",
    GCM_INTERACTIVE: "never",
  };
  const chosen = ["GIT_SSH_COMMAND", "GIT_SSH", "GIT_SSH_VARIANT"].filter((name) => env[name] !== undefined);
  for (const name of chosen) own[name] = env[name]!;
  if (chosen.length > 0) return own;
  const { stdout } = await git.run(["config", "--get", "core.sshCommand"], { cwd: repository.worktreeRoot });
  if (stdout.length === 0) own["GIT_SSH_COMMAND"] = "ssh -o BatchMode=yes -o ConnectTimeout=15";
  return own;
}

function reasonOf({ stdout, stderr }: GitResult): string {
  const rejected = /^!\t[^\t]*\t(.*)$/m.exec(new TextDecoder().decode(stdout))?.[1];
  const lines = stderr.split("\n").filter((line) => /^(?:fatal|error|remote): /.test(line.trim()));
  return printable(rejected ?? (lines.join("; ") || stderr.trim()), 400);
}

const UNAUTHORIZED =
  /authentication failed|could not read (?:username|password)|permission denied|terminal prompts disabled|host key verification/i;

function failureCode(stderr: string): ErrorCode {
  return UNAUTHORIZED.test(stderr) ? "E_AUTH" : "E_REMOTE_UNREACHABLE";
}
