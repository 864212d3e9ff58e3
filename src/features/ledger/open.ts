import { sharesClaims } from "../../config/shared-claims";
import type { Coordinator } from "../../coordinator/contract";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { printable, type Ulid } from "../../kernel/ids";
import { issuesIn } from "../issues/desk";
import { decodeIssue } from "../issues/model";
import { isFound } from "../issues/resolve";
import { LedgerCopy } from "./copy";
import { LedgerCoordinator } from "./engine";
import type { GitRemote } from "./git-remote";
import { type Known, Ledger } from "./ledger";
import { join } from "./membership";
import { NamedLedger } from "./named";
import { StateBook } from "./offline-book";
import { ledgerPlace } from "./place";
import { isUnreachable } from "./remote";
import { rulesOf } from "./rules";
import { openRemote, type SharedRemotes } from "./shared-remotes";
import { StateFile } from "./state";
import { transportOf, withoutPassword } from "./transport";

/** Everything about the ledger of a clone. */
export interface OpenLedger {
  readonly ledger: Ledger;
  readonly remote: GitRemote;
  readonly copy: LedgerCopy;
  readonly state: StateFile;
  readonly branch: string;
  readonly prefix: string;
}

/** Where the ledger is. */
export interface LedgerAt {
  readonly remote: string;
  /** Without a password. */
  readonly url: string;
  readonly branch: string;
  /** This machine's copy. */
  readonly directory: string;
}

export function whereIs({ copy, branch }: OpenLedger): LedgerAt {
  const { remote, url } = copy.transport;
  return { remote, url: withoutPassword(url), branch, directory: copy.place.directory };
}

export function isLedgerOn({ config }: Pick<Workspace, "config">): boolean {
  return config.values["sync.ledger_branch"] !== null;
}

/** What sessions of a clone with a ledger go through; null where there is none. `remotes`: of a process with many. */
export function ledgerEngine(workspace: Workspace, remotes?: SharedRemotes): Coordinator | null {
  if (!isLedgerOn(workspace))
    return sharesClaims(workspace.config)
      ? new NamedLedger(workspace.coordinator, () => notConfigured(workspace))
      : null;
  let open: Promise<OpenLedger> | null = null;
  const opened = () => {
    open ??= openLedger(workspace, { remotes });
    return open;
  };
  return new LedgerCoordinator(
    workspace.coordinator,
    async () => (await opened()).ledger,
    async () => join(workspace, await opened()),
    () => remotes?.takeWarnings() ?? [],
  );
}

/** What all claims are at the remote now, remembered for whoever reads them. False where it cannot be reached. */
export async function hearAll(workspace: Workspace): Promise<boolean> {
  try {
    const { ledger } = await openLedger(workspace);
    await ledger.parts.remote.look("all");
    await ledger.parts.remote.settle();
    return true;
  } catch (error) {
    if (!isUnreachable(error)) throw error;
    return false;
  }
}

export interface LedgerOptions {
  /** For whoever only clears away what was there before the ledger was turned off. */
  readonly usualBranch?: string | undefined;
  readonly remotes?: SharedRemotes | undefined;
}

/** Asks the remote nothing, and writes nothing. */
export async function openLedger(workspace: Workspace, options: LedgerOptions = {}): Promise<OpenLedger> {
  const { config, repository, surroundings, coordinator } = workspace;
  const { platform, git, env, home } = surroundings;
  const { values } = config;
  const branch = values["sync.ledger_branch"] ?? options.usualBranch;
  if (branch === undefined) throw notConfigured(workspace);
  const prefix = values["sync.claims_prefix"] ?? "refs/cotenant/claims/";
  checkNames(branch, prefix);
  const root = repository.worktreeRoot;
  const transport = await transportOf(git, { root, env, remote: values["sync.remote"] ?? "origin" });
  const override = values["sync.global_path_override"];
  const place = await ledgerPlace({ platform, env, home, override, url: transport.url, root });
  workspace.warnings.push(...place.warnings);
  const copy = new LedgerCopy(platform, git, place, transport, {
    objectFormat: repository.config.objectFormat,
    timeoutMs: values["sync.network_timeout"] * 1000,
  });
  const state = new StateFile(copy);
  const warn = (warning: string) => void workspace.warnings.push(warning);
  const names = { prefix, branch };
  const remote = options.remotes?.of(copy, names) ?? openRemote(copy, names, warn);
  const ledger = new Ledger({
    platform,
    local: coordinator,
    policy: config.policy,
    remote: remote.claims,
    book: new StateBook(state, copy, warn),
    rules: rulesOf(values),
    controlDir: repository.controlDir,
    retries: values["sync.claim_retries"],
    offlineMode: values["sync.offline_mode"] as "local" | "fail",
    isPushedAtOnce: values["sync.auto_claim_push"],
    known: (ids) => knownOf(workspace, ids),
  });
  return { ledger, remote: remote.git, copy, state, branch, prefix };
}

/** Somebody may have set it up, and only trust is missing. */
export function notConfigured({ config }: Pick<Workspace, "config">): CotenantError {
  const unheard = config.namedOnly("sync.ledger_branch");
  if (unheard === null) return new CotenantError("E_LEDGER_NOT_CONFIGURED", "no ledger is configured here");
  return new CotenantError(
    "E_LEDGER_NOT_CONFIGURED",
    `claims are shared here: ${unheard.place} names a ledger, and this clone does not trust it yet`,
    {
      hint: "a person has to look at it once: 'cotenant trust', then 'cotenant sync --setup-ledger'; until then, to claim provisionally: cotenant claim acquire <issue> --offline",
      data: { untrusted: "sync.ledger_branch", place: unheard.place },
    },
  );
}

/** For whoever is to judge changes of issues, where only an untrusted ledger knows whose they were; null elsewhere. */
export function claimsUnheard({ config }: Pick<Workspace, "config">): CotenantError | null {
  const unheard = config.namedOnly("sync.ledger_branch");
  if (unheard === null) return null;
  const named = String(unheard.value);
  const branch = /^[\w./-]+$/.test(named) ? named : "<branch>";
  return new CotenantError(
    "E_LEDGER_NOT_CONFIGURED",
    `cannot tell whose claims these changes of issues were made under: ${unheard.place} names a ledger, and this clone does not trust it yet`,
    {
      hint: `a person: 'cotenant trust', then again; in CI, once somebody has looked at the name: export COTENANT_SYNC_LEDGER_BRANCH=${branch}`,
      data: { untrusted: "sync.ledger_branch", place: unheard.place },
    },
  );
}

/** As Git would refuse them, but before anything is done. */
function checkNames(branch: string, prefix: string): void {
  const wrong = (setting: string, value: string, why: string) =>
    new CotenantError("E_CONFIG", `${setting} = "${printable(value)}" ${why}`, { data: { setting, value } });
  if (!isRefName(branch)) throw wrong("sync.ledger_branch", branch, "is not the name of a branch");
  if (!isRefName(prefix.slice(0, -1)))
    throw wrong("sync.claims_prefix", prefix, "cannot be the beginning of a ref");
  if (`refs/heads/${branch}/`.startsWith(prefix) || prefix.startsWith(`refs/heads/${branch}/`))
    throw wrong("sync.claims_prefix", prefix, `and the branch ${branch} would be in each other's way`);
}

export function isRefName(name: string): boolean {
  const parts = name.split("/");
  const isPart = (part: string) =>
    part !== "" && !part.startsWith(".") && !part.endsWith(".lock") && !part.endsWith(".");
  return (
    parts.every(isPart) &&
    !/\.\.|@\{|[\x00-\x20\x7f~^:?*[\\]/.test(name) &&
    name !== "@" &&
    !name.startsWith("-")
  );
}

/** From the files of this worktree where they have it: HEAD is asked only about what they lack. */
async function knownOf(workspace: Workspace, ids: readonly Ulid[]): Promise<Map<Ulid, Known>> {
  const reader = await issuesIn(workspace);
  const known = new Map<Ulid, Known>();
  const stamps = await reader.sources.stamps(ids);
  const missing: Ulid[] = [];
  for (const id of ids) {
    const stamp = stamps.get(id) ?? null;
    const raw = await reader.here.read(id, stamp);
    const reading = raw === null ? null : decodeIssue(raw.text);
    if (reading === null || !("issue" in reading) || reading.issue.id !== id) missing.push(id);
    else {
      const { issue } = reading;
      const own = { version: issue.stamp.version, state: issue.state, isDeleted: issue.deleted_at !== null };
      const mark =
        stamp !== null && stamp.version > own.version
          ? { version: stamp.version, state: stamp.state, isDeleted: stamp.isDeleted }
          : own;
      known.set(id, { mark, token: issue.stamp.fencing_token ?? 0 });
    }
  }
  if (missing.length === 0) return known;
  for (const [id, found] of await reader.findAll(missing)) {
    if (!isFound(found)) continue;
    const version = found.ahead?.version ?? found.issue.stamp.version;
    known.set(id, {
      mark: { version, state: found.state, isDeleted: found.isDeleted },
      token: found.issue.stamp.fencing_token ?? 0,
    });
  }
  return known;
}
