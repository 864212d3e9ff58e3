import { CotenantError } from "../../errors/cotenant-error";
import type { Environment } from "../../identity/repository";
import { printable } from "../../kernel/ids";
import type { Git, GitResult } from "../../platform/git";
import { gitFailed, gitWords } from "../../platform/git-answers";

/** How the clone's own Git would reach the remote, for Git commands in a repository beside it. */
export interface Transport {
  readonly remote: string;
  /** As configured, `insteadOf` applied. */
  readonly url: string;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** Settings of the clone that say how a remote is reached, and nothing else of it. */
const REACHING = /^(?:http|https|credential|url|ssh|protocol)\.|^core\.(?:sshcommand|gitproxy)$/;
const OF_REMOTE = /^(?:url|pushurl|proxy|proxyauthmethod|uploadpack|receivepack|vcs)$/;
/** Variables that people and CI set for the same purpose. Everything else of Git's is scrubbed. */
const KEPT_VARIABLES =
  /^GIT_(?:SSH|SSH_VARIANT|SSL_[A-Z_]+|HTTP_[A-Z_]+|PROXY_[A-Z_]+|CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM)|CURL_[A-Z_]+)$/;

interface ConfigEntry {
  readonly scope: string;
  readonly key: string;
  readonly value: string;
}

export async function transportOf(
  git: Git,
  place: { readonly root: string; readonly env: Environment; readonly remote: string },
): Promise<Transport> {
  const { root, remote } = place;
  const kept = keptVariables(place.env);
  const entries = await configEntries(git, root, kept);
  const urls = entries.filter(({ key }) => key === `remote.${remote}.url`);
  if (urls.length === 0) {
    throw new CotenantError("E_LEDGER_NOT_CONFIGURED", `this clone has no remote "${printable(remote)}"`, {
      hint: `name one ('git remote add ${remote} <address>'), or set sync.remote`,
      data: { remote, setting: "sync.remote" },
    });
  }
  const settings = entries.filter(
    ({ scope, key }) => scope !== "global" && scope !== "system" && isReaching(key, remote),
  );
  const ssh = sshCommand(place.env, entries);
  const env = {
    ...kept,
    ...asVariables(settings),
    ...QUIET,
    ...(ssh === null ? {} : { GIT_SSH_COMMAND: ssh }),
  };
  const isRewritten = entries.some(({ key }) => /^url\..*\.(?:push)?insteadof$/.test(key));
  const url = isRewritten ? await rewrittenUrl(git, root, remote, kept) : urls.at(-1)!.value;
  return { remote, url, env, cwd: root };
}

/** Nobody is there to answer: no terminal, no window. */
const QUIET = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_ASKPASS: "",
  SSH_ASKPASS_REQUIRE: "never",
  GCM_INTERACTIVE: "never",
};

function keptVariables(env: Environment): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env))
    if (value !== undefined && KEPT_VARIABLES.test(name)) kept[name] = value;
  return kept;
}

async function configEntries(git: Git, cwd: string, env: Record<string, string>): Promise<ConfigEntry[]> {
  const { status, stdout, stderr } = await git.run(["config", "--null", "--show-scope", "--list"], {
    cwd,
    env,
  });
  if (status !== 0) throw gitFailed("Git cannot read its configuration", stderr);
  const parts = new TextDecoder().decode(stdout).split("\0");
  const entries: ConfigEntry[] = [];
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [name = "", ...value] = parts[at + 1]!.split("\n");
    entries.push({ scope: parts[at]!, key: lowerCased(name), value: value.join("\n") });
  }
  return entries;
}

/** Section and variable in small letters; what stands between them keeps its own. */
function lowerCased(key: string): string {
  const first = key.indexOf(".");
  const last = key.lastIndexOf(".");
  return key.slice(0, first).toLowerCase() + key.slice(first, last) + key.slice(last).toLowerCase();
}

function isReaching(key: string, remote: string): boolean {
  const own = `remote.${remote}.`;
  return key.startsWith(own) ? OF_REMOTE.test(key.slice(own.length)) : REACHING.test(key);
}

/** In the environment, not on the command line: a header or a proxy may have a password in it. */
function asVariables(entries: readonly ConfigEntry[]): Record<string, string> {
  const env: Record<string, string> = { GIT_CONFIG_COUNT: String(entries.length) };
  for (const [i, { key, value }] of entries.entries()) {
    env[`GIT_CONFIG_KEY_${i}`] = key;
    env[`GIT_CONFIG_VALUE_${i}`] = value;
  }
  return env;
}

/** SSH that asks nothing. Another program than ssh is left as it is: it may not know the option. */
function sshCommand(env: Environment, entries: readonly ConfigEntry[]): string | null {
  const given =
    env["GIT_SSH_COMMAND"] ?? entries.findLast(({ key }) => key === "core.sshcommand")?.value ?? null;
  if (given === null) return env["GIT_SSH"] === undefined ? "ssh -o BatchMode=yes" : null;
  const [program = ""] = given.trim().split(/\s+/);
  return /(?:^|\/)ssh$/.test(program) ? `${given} -o BatchMode=yes` : given;
}

async function rewrittenUrl(
  git: Git,
  cwd: string,
  remote: string,
  env: Record<string, string>,
): Promise<string> {
  const { stdout } = await git.run(["ls-remote", "--get-url", remote], { cwd, env });
  return new TextDecoder().decode(stdout).trim();
}

const NO_CREDENTIALS =
  /authentication failed|terminal prompts disabled|could not read (?:username|password)|permission denied|host key verification failed|(?:returned error|error:?) 40[13]|access denied|invalid credentials|no supported authentication/i;

/** What Git's words mean when it could not do its business with the remote. */
export function networkFailure(
  { remote, url }: Transport,
  doing: string,
  { stderr }: GitResult,
): CotenantError {
  const said = gitWords(lastLines(stderr));
  const data = { remote, url: withoutPassword(url), said };
  if (NO_CREDENTIALS.test(stderr)) {
    const isSsh = /publickey|host key/i.test(stderr);
    return new CotenantError("E_AUTH", `${doing} failed: ${remote} does not let us in (${said})`, {
      ...(isSsh
        ? { hint: "load the key into ssh-agent ('ssh-add'), and accept the host's key by hand once" }
        : {}),
      data,
    });
  }
  return new CotenantError("E_REMOTE_UNREACHABLE", `${doing} failed: ${remote} cannot be reached (${said})`, {
    data,
  });
}

function lastLines(stderr: string): string {
  const lines = stderr.split("\n").filter((line) => line.trim() !== "" && !/^(?:To |From )/.test(line));
  const telling = lines.filter((line) => /^(?:fatal|error|remote|ssh|git)/i.test(line));
  return (telling.length > 0 ? telling : lines).slice(0, 2).join("; ");
}

/** `https://user:secret@host/…` never reaches a message or a file whole. */
export function withoutPassword(url: string): string {
  return url.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/@]*@/i, "$1");
}
