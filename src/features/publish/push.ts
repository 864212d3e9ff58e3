import type { FencedPush } from "../../coordinator/fence";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { ErrorCode } from "../../errors/registry";
import type { ObjectId } from "../../git/object-name";
import { printable } from "../../kernel/ids";
import { type GitResult, isCutOff } from "../../platform/git";
import { gitWords, isUnsent } from "../../platform/git-answers";
import { mainRemote } from "../hooks/divergence";
import { tipOf } from "./base";
import { branchName } from "./branch-rules";
import type { Noun } from "./intents";

export type PushResult =
  /** It is on the remote. */
  | { readonly result: "pushed" | "verified"; readonly remote: string }
  | {
      readonly result: "failed";
      readonly remote: string;
      readonly code: ErrorCode;
      readonly why: string;
      /** What to do, where the code alone does not say it; pushing by hand is no way out then. */
      readonly hint?: string;
    }
  /** The remote could not be asked either. */
  | { readonly result: "unknown"; readonly remote: string; readonly why: string };

/** What the log calls it. */
export function pushEvent({ result }: PushResult, noun: Noun): string {
  if (result === "failed") return `${noun}.push_failed`;
  return result === "unknown" ? `${noun}.push_unclear` : `${noun}.pushed`;
}

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

const NOT_ATOMIC = /does not support --atomic/i;

/**
 * Pushes the branch as it is now, which has the commit in it, and with it whatever `fence` wants, as one. Never asks anybody
 * anything; where the answer is lost, the remote is asked what became of it. Throws what the fence says of claims that were
 * lost. With `expected`, the commit itself is pushed, wherever the branch is here, and only onto that (null: nothing) there.
 */
export async function push(
  workspace: Workspace,
  remote: string,
  ref: string,
  commit: ObjectId,
  fence: (tip: ObjectId) => Promise<FencedPush | null>,
  expected?: ObjectId | null,
): Promise<PushResult> {
  for (let tries = 0; tries < 2; tries++) {
    // What is pushed is what was looked at, wherever the branch goes meanwhile.
    const tip = expected === undefined ? ((await tipOf(workspace, ref)) ?? commit) : commit;
    const result = await pushOnce(workspace, remote, { ref, tip, commit, expected }, await fence(tip));
    if (result !== "again") return result;
  }
  const why = "the claim was moved by other processes of this clone meanwhile";
  return { result: "failed", remote, code: "E_PUSH_REJECTED", why };
}

interface Wanted {
  readonly ref: string;
  /** Where the branch is to be. */
  readonly tip: ObjectId;
  /** What has to be in it. */
  readonly commit: ObjectId;
  /** Where the remote's branch must be; null: nowhere; undefined: anywhere below it. */
  readonly expected?: ObjectId | null | undefined;
}

/** "again": refused because of a claim that is still ours, and that somebody here has beaten since. */
async function pushOnce(
  workspace: Workspace,
  remote: string,
  wanted: Wanted,
  fenced: FencedPush | null,
): Promise<PushResult | "again"> {
  const { ref, tip, commit } = wanted;
  const { git } = workspace.surroundings;
  const cwd = workspace.repository.worktreeRoot;
  const env = await silent(workspace);
  const timeoutMs = workspace.config.values["publish.push_timeout_secs"] * 1000;
  let said: GitResult | null = null;
  let why = "";
  try {
    const lease = wanted.expected === undefined ? [] : [`--force-with-lease=${ref}:${wanted.expected ?? ""}`];
    const options = ["--porcelain", "--no-progress", ...(fenced?.options ?? []), ...lease];
    const specs = [`${tip}:${ref}`, ...(fenced?.refspecs ?? [])];
    said = await git.run(["push", ...options, "--end-of-options", remote, ...specs], {
      cwd,
      env: { ...env, ...fenced?.env },
      timeoutMs,
    });
    if (said.status === 0) {
      await fenced?.settle("done");
      return { result: "pushed", remote };
    }
    why = reasonOf(said);
  } catch (error) {
    if (!isCutOff(error)) throw error;
    why = error.message;
  }
  if (fenced !== null && said !== null && NOT_ATOMIC.test(said.stderr))
    return withoutFence(workspace, remote, wanted);
  // Rejected is a clear answer. Anything else may have happened after the remote had it.
  if (said !== null && /^!\t(?!.*\[remote failure\])/m.test(new TextDecoder().decode(said.stdout))) {
    if ((await fenced?.settle("refused")) === "again") return "again";
    return { result: "failed", remote, code: "E_PUSH_REJECTED", why };
  }
  const look = () => lookAtRemote(workspace, remote, ref, commit, env, Math.min(LOOK_MS, timeoutMs));
  let there: boolean | null;
  try {
    // Where the beats are that went with it, the branch is too; they may have been beaten since.
    const beats = await fenced?.settle("unclear");
    there = beats === "done" || (beats === "unclear" ? null : await look());
  } catch (error) {
    // Somebody else has the claim now. It may have been ours when the push arrived.
    if (!isLost(error)) throw error;
    there = await look();
    if (there === false) throw error;
    workspace.warnings.push(error.message);
  }
  if (there === true) return { result: "verified", remote };
  if (there === null) {
    if (said === null || !isUnsent(said.stderr)) return { result: "unknown", remote, why };
    return { result: "failed", remote, code: failureCode(said.stderr), why };
  }
  return { result: "failed", remote, code: failureCode(said?.stderr ?? ""), why };
}

function isLost(error: unknown): error is CotenantError {
  return error instanceof CotenantError && error.code === "E_FENCING_MISMATCH";
}

/** PROTOCOL 24: a remote that cannot do both in one step is pushed to only where that is allowed. */
async function withoutFence(
  workspace: Workspace,
  remote: string,
  wanted: Wanted,
): Promise<PushResult | "again"> {
  const why = "it cannot take several refs in one step, so the push cannot be fenced by the claim";
  if (workspace.config.values["publish.unfenced_remote"]) {
    workspace.warnings.push(`${printable(remote, 100)}: ${why}`);
    return pushOnce(workspace, remote, wanted, null);
  }
  const hint =
    "let the remote take atomic pushes (receive.advertiseAtomic), or allow it: publish.unfenced_remote";
  return { result: "failed", remote, code: "E_POLICY", why, hint };
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
export async function silent({ surroundings, repository }: Workspace): Promise<Record<string, string>> {
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
  const all = [...new TextDecoder().decode(stdout).matchAll(/^!\t[^\t]*\t(.*)$/gm)].map(
    ([, why = ""]) => why,
  );
  // Of several that go together, the others only say that one of them failed.
  const rejected = all.find((why) => !/atomic/i.test(why)) ?? all[0];
  const lines = stderr.split("\n").map((line) => line.trim());
  const said = (who: RegExp) => lines.filter((line) => who.test(line));
  // Why a server's hook declined, only the server can say.
  if (rejected !== undefined) return gitWords([rejected, ...said(/^remote: *\S/)].join("\n"), 1_000);
  return gitWords(said(/^(?:fatal|error|remote): /).join("\n") || stderr, 1_000);
}

const UNAUTHORIZED =
  /authentication failed|could not read (?:username|password)|permission denied|terminal prompts disabled|host key verification/i;

function failureCode(stderr: string): ErrorCode {
  return UNAUTHORIZED.test(stderr) ? "E_AUTH" : "E_REMOTE_UNREACHABLE";
}
