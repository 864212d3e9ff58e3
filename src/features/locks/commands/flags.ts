import type { Flag, Parsed } from "../../../cli/grammar/command";
import { endOfFlags } from "../../../cli/grammar/parse";
import type { ChangeRequest, HolderRequest } from "../../../coordinator/requests";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError, usageError } from "../../../errors/cotenant-error";
import { KEY_KINDS } from "../../../kernel/keys";
import type { LeaseTerms, ReleaseRequest, RenewRequest, Waiting } from "../operations";
import { isLeaseId, type LockTargets } from "../targets";

/** For every command that changes a lease. */
export const CHANGE_FLAGS: Readonly<Record<string, Flag>> = {
  "request-id": {
    value: "<ulid>",
    meaning: "doing it again with the same id has the effect of doing it once",
  },
};

export function changeFrom(parsed: Parsed): ChangeRequest {
  return { requestId: parsed.text("request-id") };
}

/** For commands of a lease's holder. A secret is taken from a file or the environment, never from the command line. */
export const HOLDER_FLAGS: Readonly<Record<string, Flag>> = {
  ...CHANGE_FLAGS,
  "secret-file": {
    value: "<file>",
    completes: "path",
    meaning: "prove the lease with the secret in this file (also COTENANT_SECRET)",
  },
  token: { value: "<file>", meaning: "old name of --secret-file", insteadUse: "secret-file" },
};

export function holderFrom(parsed: Parsed, workspace: Workspace): HolderRequest {
  const oldName = parsed.text("token");
  if (oldName !== undefined) workspace.warnings.push("--token is an old name: use --secret-file");
  return { ...changeFrom(parsed), secretFile: parsed.text("secret-file") ?? oldName };
}

export const REASON_FLAG: Readonly<Record<string, Flag>> = {
  reason: { value: "<text>", meaning: "why; logged" },
};

export const NEEDS_REASON: Readonly<Record<string, Flag>> = {
  reason: { ...REASON_FLAG["reason"]!, isRequired: true },
};

export function releaseFrom(parsed: Parsed, workspace: Workspace): ReleaseRequest {
  return { ...holderFrom(parsed, workspace), reason: parsed.text("reason") };
}

export const RENEW_FLAGS: Readonly<Record<string, Flag>> = {
  ttl: { value: "<secs>", meaning: "count anew from now, for this long (default: the lease's own TTL)" },
  "override-max": { meaning: "go past the total lifetime; needs --reason" },
  ...REASON_FLAG,
};

export function renewFrom(parsed: Parsed, workspace: Workspace): RenewRequest {
  return {
    ...releaseFrom(parsed, workspace),
    ttlSecs: parsed.whole("ttl"),
    overrideMax: parsed.has("override-max"),
  };
}

/** What all commands that lease something have in common. */
export const ACQUIRE_FLAGS: Readonly<Record<string, Flag>> = {
  ...CHANGE_FLAGS,
  ttl: {
    value: "<secs>",
    meaning: "how long it lasts unless renewed (default 600); 0 with --reason: no expiry",
  },
  wait: { meaning: "wait in the queue when somebody else holds it" },
  timeout: { value: "<secs>", meaning: "how long to wait (default 300)" },
  reason: { value: "<text>", meaning: "why; shown to others and logged" },
  note: { value: "<text>", meaning: "a remark for whoever looks" },
  "print-secret": { meaning: "print the secret that proves the lease, for scripts" },
};

export function termsFrom(parsed: Parsed, onWait?: Waiting["onWait"]): LeaseTerms {
  return {
    ...changeFrom(parsed),
    ttlSecs: parsed.whole("ttl"),
    reason: parsed.text("reason"),
    note: parsed.text("note"),
    offline: parsed.has("offline"),
    wait: waitingFrom(parsed, onWait),
  };
}

function waitingFrom(parsed: Parsed, onWait: Waiting["onWait"]): Waiting | undefined {
  const timeoutSecs = parsed.whole("timeout");
  if (parsed.has("wait")) return { timeoutSecs, onWait };
  if (timeoutSecs === undefined) return undefined;
  throw usageError("--timeout says how long to wait, but --wait is missing", "add --wait");
}

/** How things to lock are named on the command line. */
export const TARGET_FLAGS: Readonly<Record<string, Flag>> = {
  dir: { value: "<path>", many: true, completes: "directory", meaning: "a directory and everything in it" },
  resource: {
    value: "<name>",
    many: true,
    completes: "resource",
    meaning: "a named resource; the name of a path or a ref leases that",
  },
  ref: { value: "<refs/…>", many: true, completes: "ref", meaning: "a Git ref, by its full name" },
  "all-dirs": { meaning: "every path given is a directory (a bare --dir means this)" },
  "all-resources": { meaning: "every word given is a resource (a bare --resource means this)" },
  "all-refs": { meaning: "every word given is a ref (a bare --ref means this)" },
};

/** Of commands about leases that exist: what matches a pattern may have changed since. */
export const NO_GLOB: Readonly<Record<string, Flag>> = {
  glob: { meaning: "not here: name the directory that was leased", insteadUse: "dir" },
};

const BARE: Readonly<Record<string, string>> = {
  "--dir": "--all-dirs",
  "--resource": "--all-resources",
  "--ref": "--all-refs",
};

/** `--dir src` names one directory; a bare `--dir` (`lock acquire src lib --dir`) speaks of all the words. */
export function readBareTargetFlags(args: readonly string[]): string[] {
  const end = endOfFlags(args);
  return args.map((arg, i) => {
    const next = args[i + 1];
    const isBare = i < end && Object.hasOwn(BARE, arg) && (next === undefined || next.startsWith("--"));
    return isBare ? BARE[arg]! : arg;
  });
}

/** What is to be leased: with `--glob`, every word is a pattern. */
export function targetsFrom(parsed: Parsed): LockTargets & { readonly globs?: readonly string[] } {
  if (parsed.has("glob")) return { ...meant(parsed, []), globs: parsed.words };
  return meant(parsed, parsed.words);
}

/** Leases that exist: their ids and keys are understood whatever the other words are. */
export function leasesFrom(parsed: Parsed): LockTargets {
  if (parsed.has("glob"))
    throw new CotenantError("E_USAGE", "--glob is for 'lock acquire': a pattern names no lease", {
      hint: "name the directory that was leased, with --dir, or the lease's id: 'cotenant lock status' shows both",
    });
  const isPlain = (word: string) =>
    isLeaseId(word) || (parsed.has("all-dirs") && KEY_KINDS.some((kind) => word.startsWith(`${kind}:`)));
  const targets = meant(
    parsed,
    parsed.words.filter((word) => !isPlain(word)),
  );
  return { ...targets, names: [...parsed.words.filter(isPlain), ...targets.names] };
}

/** A bare `--dir`, `--resource` or `--ref` says what all the words are. */
function meant(parsed: Parsed, words: readonly string[]) {
  const among = (flag: string) => (parsed.has(`all-${flag}s`) ? words : []);
  const isPlain = !["dir", "resource", "ref"].some((flag) => parsed.has(`all-${flag}s`));
  return {
    names: isPlain ? words : [],
    dirs: [...among("dir"), ...parsed.texts("dir")],
    resources: [...among("resource"), ...parsed.texts("resource")],
    refs: [...among("ref"), ...parsed.texts("ref")],
  };
}
