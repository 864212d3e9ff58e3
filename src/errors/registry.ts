/**
 * Every error code cotenant can give: what it means, how a process and an HTTP answer end with it, and what
 * to do next. Codes are never renamed. `docs/ERRORS.md` is generated from this table.
 */
export interface ErrorEntry {
  readonly exit: number;
  readonly http: number;
  readonly meaning: string;
  /** What to do next, where the situation offers nothing better. Never destructive. */
  readonly hint: string;
  /** What the seed documents call it, where they do: for the table in docs/ERRORS.md alone. */
  readonly seeds?: string;
}

const entries = {
  E_LOCK_CONFLICT: {
    exit: 1,
    http: 409,
    meaning: "Somebody else holds what was asked for.",
    hint: "take other work; 'cotenant status' shows who holds what",
    seeds: "002 E_LOCK_CONFLICT; 004 ClaimConflict",
  },
  E_QUEUED: {
    exit: 1,
    http: 409,
    meaning: "It is free, but others wait for it already and were first.",
    hint: "take other work; 'cotenant lock status' shows who waits",
  },
  E_PUBLISH_CONFLICT: {
    exit: 1,
    http: 409,
    meaning: "The branch has other changes in the same places, or a patch does not fit what is there.",
    hint: "look at what is on the branch now, make the change anew on top of it, and publish again",
  },
  E_PUSH_REJECTED: {
    exit: 1,
    http: 409,
    meaning: "It is committed here, but the remote did not take it.",
    hint: "see what the remote says against it",
  },
  E_RETRIES_EXHAUSTED: {
    exit: 2,
    http: 503,
    meaning: "Somebody else was faster each time, and the tries are used up.",
    hint: "run it again in a moment; sync.claim_retries says how often a shared claim is tried",
    seeds: "004 RetriesExhausted, MaxRetriesExceeded",
  },
  E_LEDGER_NOT_CONFIGURED: {
    exit: 3,
    http: 409,
    meaning: "Claims are not shared between machines here: no ledger is configured, or it was not set up.",
    hint: "set sync.ledger_branch ('cotenant config set sync.ledger_branch cotenant-sync'), let a person run 'cotenant trust', then run 'cotenant sync --setup-ledger'",
    seeds: "004 LEDGER_NOT_CONFIGURED",
  },
  E_NOT_FOUND: {
    exit: 4,
    http: 404,
    meaning: "There is no such issue, lease, worktree or other thing.",
    hint: "'cotenant status' and 'cotenant issue list' show what there is",
    seeds: "004 IssueNotFound",
  },
  E_AMBIGUOUS_ID: {
    exit: 4,
    http: 404,
    meaning: "A shortened id fits more than one thing.",
    hint: "type more of the id; the candidates are listed",
  },
  E_TERMINAL_STATE: {
    exit: 5,
    http: 409,
    meaning: "The issue is done, rejected or archived: there is nothing left to claim.",
    hint: "pick another one with 'cotenant issue list'",
    seeds: "004 IssueClosed",
  },
  E_LOCK_NOT_HELD: {
    exit: 6,
    http: 403,
    meaning: "The caller is not the holder of that lease, or cannot prove it.",
    hint: "only its holder can do that; 'cotenant status' shows who holds what",
    seeds: "002 E_LOCK_NOT_HELD",
  },
  E_LEASE_REQUIRED: {
    exit: 6,
    http: 403,
    meaning: "Only whoever holds the lease may do that, and the caller holds none.",
    hint: "take the lease first: 'cotenant claim acquire' for issues, 'cotenant lock acquire' for the rest",
    seeds: "000 requires active lease",
  },
  E_PATH_NOT_LEASED: {
    exit: 6,
    http: 403,
    meaning: "A path is to be published without a lease that covers it.",
    hint: "lease it first ('cotenant lock acquire <path>'), and publish again",
  },
  E_LOCK_EXPIRED: {
    exit: 7,
    http: 410,
    meaning: "The lease has run out. What it guarded may have changed hands since.",
    hint: "acquire it again, and read what it guards again before writing",
    seeds: "002 E_LOCK_EXPIRED",
  },
  E_FENCING_MISMATCH: {
    exit: 8,
    http: 412,
    meaning: "The lease was evicted, taken over or handed on: its fencing token is stale.",
    hint: "stop writing; acquire it again, and read what it guards again first",
    seeds: "002 E_FENCING_MISMATCH",
  },
  E_POLICY: {
    exit: 9,
    http: 403,
    meaning: "This repository's policy does not allow it.",
    hint: "ask somebody whom the policy allows, or change [policy] in the configuration",
  },
  E_LIMIT: {
    exit: 9,
    http: 403,
    meaning: "It would go over a limit.",
    hint: "ask for less; the message names the limit",
  },
  E_APPROVAL_NEEDED: {
    exit: 11,
    http: 409,
    meaning: "Ending somebody else's live lease needs the approval of others here. Nothing has ended yet.",
    hint: "propose it with 'cotenant claim force-evict', and let others agree; 'cotenant claim proposals' shows what is open",
  },
  E_PROVISIONAL: {
    exit: 9,
    http: 409,
    meaning: "The claim is known to this clone only: the ledger has not confirmed it.",
    hint: "confirm it when the remote can be reached: cotenant sync --reconcile",
    seeds: "004 offline_claim",
  },
  E_UNTRUSTED: {
    exit: 9,
    http: 403,
    meaning: "The repository names a command to run, and nobody has allowed that in this clone.",
    hint: "look at what it would run ('cotenant trust' shows it), then allow it with 'cotenant trust'",
  },
  E_DIVERGED: {
    exit: 9,
    http: 409,
    meaning: "The branch lacks history of the main branch, which changes for everybody need.",
    hint: "rebase onto the main branch, or merge it, and try again",
    seeds: "000 branch diverged",
  },
  E_GATE_PENDING: {
    exit: 9,
    http: 409,
    meaning: "A gate of the issue has not been passed.",
    hint: "'cotenant gate list' shows what is asked for; run it with 'cotenant gate run'",
  },
  E_CYCLE: {
    exit: 9,
    http: 409,
    meaning: "The dependency would close a circle: the issues would wait for each other for ever.",
    hint: "remove one of the dependencies on the way with 'cotenant dep rm'",
  },
  E_PATH_RULE: {
    exit: 9,
    http: 403,
    meaning: "A rule of policy.paths forbids this agent to write the file.",
    hint: "leave it to somebody whom the rule does not bind; 'cotenant config show policy.paths' shows the rules",
  },
  E_PATH_ESCAPE: {
    exit: 9,
    http: 403,
    meaning: "The path leads out of the worktree, into Git's own directory, or cannot be a repository path.",
    hint: "name a file inside this worktree",
  },
  E_CONSISTENCY_UNAVAILABLE: {
    exit: 9,
    http: 409,
    meaning:
      "A snapshot or restore needs a worktree that holds still, and this one did not, or nobody can say.",
    hint: "wait until nobody writes there, and run it again",
    seeds: "002 E_CONSISTENCY_UNAVAILABLE",
  },
  E_PROTECTED_REF: {
    exit: 9,
    http: 403,
    meaning: "A branch that nobody publishes to: main, master, a protected one, or one that is checked out.",
    hint: "publish to a branch of your own (--branch work/<name>), and merge it from there",
  },
  E_SECRET_FOUND: {
    exit: 9,
    http: 403,
    meaning: "What was to be published holds what looks like a secret, or is a file that usually does.",
    hint: "take it out; if it is none, say so in the file (secretlint-disable-line) or in publish.allow_secrets_in",
  },
  E_CHECK_FAILED: {
    exit: 9,
    http: 403,
    meaning: "A command of publish.checks did not pass.",
    hint: "mend what it found, and publish again",
  },
  E_HOOKS: {
    exit: 9,
    http: 409,
    meaning: "Git hooks that are there belong to others too, or cannot be changed without losing something.",
    hint: "'cotenant hooks status' shows what is there; cotenant's docs/HOOKS.md says how each kind is chained",
  },
  E_SETTINGS: {
    exit: 9,
    http: 409,
    meaning:
      "A harness's settings belong to others too, cannot be read, or cannot be changed without losing something.",
    hint: "'cotenant agent list' shows what is there; cotenant's docs/AGENTS.md says where each harness keeps its settings",
  },
  E_CONTENT_CHANGED: {
    exit: 1,
    http: 409,
    meaning:
      "A file was changed by somebody else while the caller waited for it. The lease was granted all the same.",
    hint: "read the file again, then write it: this is refused only once",
  },
  E_NOT_A_REPO: {
    exit: 10,
    http: 500,
    meaning: "This is not inside a Git repository with a working tree.",
    hint: "change into a Git repository, or make one with 'git init'",
  },
  E_AGENT_ID_REQUIRED: {
    exit: 10,
    http: 400,
    meaning: "Nobody said who is asking.",
    hint: "run: export COTENANT_AGENT_ID=agent:your-name; a person adds --agent-id human:<you>",
  },
  E_CONFIG: {
    exit: 10,
    http: 500,
    meaning: "A configuration file or variable cannot be used as it is.",
    hint: "mend the named key in the named file",
  },
  E_GIT: {
    exit: 10,
    http: 500,
    meaning: "Git refused or failed.",
    hint: "run the named Git command by hand to see what it says",
  },
  E_GIT_TOO_OLD: {
    exit: 10,
    http: 500,
    meaning: "Git is missing or older than 2.38.",
    hint: "install Git 2.38 or newer",
  },
  E_GIT_TIMEOUT: {
    exit: 10,
    http: 504,
    meaning: "A Git command did not end in time.",
    hint: "try again; if it stays so, run the named Git command by hand",
  },
  E_AUTH: {
    exit: 10,
    http: 502,
    meaning: "The remote wants credentials, and there are none that work without asking.",
    hint: "set up a credential helper, or load the key into ssh-agent; 'git ls-remote' by hand shows what is asked",
    seeds: "004 AuthenticationFailed",
  },
  E_REMOTE_UNREACHABLE: {
    exit: 10,
    http: 502,
    meaning: "The remote could not be reached, or did not answer in full.",
    hint: "look at the network and the remote's address ('git ls-remote'), then run it again",
    seeds: "004 LedgerSyncError, NetworkError",
  },
  E_LEDGER_REWRITTEN: {
    exit: 10,
    http: 409,
    meaning:
      "The remote's ledger is not a continuation of what was seen of it: it was rewritten, deleted or hidden.",
    hint: "find out who changed it; 'cotenant sync --force-resync' says what accepting it would mean",
    seeds: "004 force-pushed",
  },
  E_DAEMON: {
    exit: 10,
    http: 503,
    meaning: "The daemon could not be started, stopped or asked. Everything works without it.",
    hint: "'cotenant daemon status' says how it stands",
  },
  E_DISK: {
    exit: 10,
    http: 507,
    meaning:
      "The disk is full, read-only or failing. Nothing is acknowledged that may not be there tomorrow.",
    hint: "make room or mend the disk, then run the same command again",
  },
  E_PERMISSION: {
    exit: 10,
    http: 500,
    meaning: "The file system does not let this user read or write the control plane.",
    hint: "check the owner and mode of the named path; for a shared repository set core.sharedRepository",
  },
  E_NETWORK_FS: {
    exit: 10,
    http: 500,
    meaning: "The repository is on a network or pass-through file system, where locks cannot be trusted.",
    hint: "use a clone on a local disk; --allow-network-fs goes on at your own risk",
  },
  E_STORE_BUSY: {
    exit: 10,
    http: 503,
    meaning:
      "Another process has held the store's mutex for too long, or took something away while we worked.",
    hint: "look at the named process, then run the same command again",
  },
  E_SCHEMA_NEWER: {
    exit: 10,
    http: 500,
    meaning: "A file was written by a newer cotenant. It was left untouched.",
    hint: "use the newer cotenant on this machine too",
    seeds: "004 schema_version",
  },
  E_BLOCKED: {
    exit: 11,
    http: 409,
    meaning:
      "A file that is needed was still held at the one retry. Work on it stops until somebody says how to go on.",
    hint: "ask the owner named in the report to commit or stop; then run: cotenant guard retry",
    seeds: "001 waiting_for_instruction",
  },
  E_PAUSED: {
    exit: 11,
    http: 503,
    meaning: "A person has paused the repository: what is held stays held, and nothing new is granted.",
    hint: "go on with what you hold; a person ends the pause: cotenant resume",
  },
  E_WAIT_TIMEOUT: {
    exit: 12,
    http: 408,
    meaning: "Waited until the timeout, and it is still held.",
    hint: "take other work; 'cotenant status' shows who holds what",
  },
  E_INTERRUPTED: {
    exit: 130,
    http: 499,
    meaning: "A signal ended a wait or a trial; a place in the queue is given up. The process ends by it.",
    hint: "ask again when there is time to wait",
  },
  E_LOG_CORRUPT: {
    exit: 13,
    http: 500,
    meaning: "The log is damaged below what was acknowledged. Readers go on; writers stop.",
    hint: "run: cotenant recover (it keeps the damaged file)",
  },
  E_PARTIAL_SNAPSHOT: {
    exit: 13,
    http: 500,
    meaning: "A snapshot was not finished, or something of it is missing or damaged.",
    hint: "'cotenant doctor --strict' says what is wrong with which; the others are not touched by it",
    seeds: "002 E_PARTIAL_SNAPSHOT",
  },
  E_NOT_EXECUTABLE: {
    exit: 126,
    http: 422,
    meaning: "What was to be run is there, but may not be run. The exit status is a shell's.",
    hint: "make it executable with 'chmod +x', or name the program that runs it, as in cotenant exec -- sh build.sh",
  },
  E_NO_COMMAND: {
    exit: 127,
    http: 422,
    meaning: "There is no command of that name to run. The exit status is a shell's.",
    hint: "check the spelling and PATH; a script of the repository is named with its path, as in ./build.sh",
  },
  E_USAGE: {
    exit: 64,
    http: 400,
    meaning: "The command line or the request cannot be understood.",
    hint: "see 'cotenant help' or the command's --help",
  },
  E_INTERNAL: {
    exit: 70,
    http: 500,
    meaning: "A bug in cotenant.",
    hint: "please report it with the command and this message; COTENANT_DEBUG=1 prints where it happened",
  },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof entries;
export const ERRORS: Readonly<Record<ErrorCode, ErrorEntry>> = entries;

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(entries, code);
}
