import { snapshotScenarios } from "./snapshot-scenarios";

/** What happens to the repository before the command under test. */
export type Step =
  | { readonly agent: string; readonly args: readonly string[] }
  | { readonly wait: number }
  /** Git itself, in the repository. */
  | { readonly git: readonly string[] }
  /** The same, as if it had been done that many seconds ago. */
  | { readonly agent: string; readonly acquire: string; readonly ttlSecs: number; readonly agoSecs: number }
  /** A file of the worktree; null: it goes. */
  | { readonly file: string; readonly text: string | null }
  /** Asks for the plan of an in-place restore, which `$plan` stands for from then on. */
  | { readonly agent: string; readonly plan: string }
  /** Renews until an operation on a few keys takes the log beyond this size. */
  | { readonly agent: string; readonly renew: string; readonly untilBytes: number }
  | {
      readonly spoil:
        | "flip a bit"
        | "lose the log"
        | "lose the index"
        | "tear the tail"
        | "fail a sync"
        | "age the secrets";
    };

export interface Scenario {
  readonly name: string;
  /** Tried by `npm test` too. */
  readonly isCore: boolean;
  readonly before: readonly Step[];
  readonly agent: string;
  /** `$issue` and `$request` stand for ids, `$repo` for the repository. */
  readonly args: readonly string[];
  /** The kind of line that is the command's effect; null when it has none of its own. */
  readonly event: string | null;
  /** How many leases that line is about: all or none. */
  readonly leases: number;
  /** Whether the effect may be had more than once by asking again without a request id. */
  readonly isRepeatable: boolean;
  /** How a second call may end when the first has had its effect. */
  readonly again: readonly number[];
  /** What must be possible, and what not, once the command has succeeded: who, what, exit status. */
  readonly proofs: readonly (readonly [agent: string, args: string, status: number])[];
  /** False for a command that does several things one after the other, of which some may fail. */
  readonly isOneStep: boolean;
  /** What else than a failing disk it may be told: where Git is part of it, Git's calls fail too. */
  readonly refusals: readonly string[];
  /** Whether others can write before the command has succeeded. */
  readonly isOpen: boolean;
  /** The issue before and after, as `summary` puts it: anybody sees one of the two, and the log decides which. */
  readonly issue: { readonly old: string; readonly new: string } | null;
  /** What must hold of files that are not ours, whatever happened: what is wrong with them, or null. */
  readonly sane: ((repo: string) => string | null) | null;
}

/** The least that the configuration allows. */
export const ROTATE_BYTES = 65_536;

const A = "agent:a";
const B = "agent:b";
export const OTHER = "agent:zoe";
const ADA = "human:ada";
const LONG = "--ttl 7200";

const does = (agent: string, text: string): Step => ({ agent, args: words(text) });
const ISSUE = does(A, "issue create --title work");
const HELD = [does(A, "lock acquire first.ts --ttl 7200"), does(A, `lock acquire a.ts ${LONG}`)];
const BOUND = "--pid 1";
const GUARDED = [does(A, `guard check a.ts ${BOUND}`)];
const CLAIMED = [ISSUE, does(A, `claim acquire $issue ${LONG}`)];
/** A remote and this machine's copy of the ledger, both inside the repository: they are put back with it. */
const SHARED: readonly Step[] = [
  ISSUE,
  { git: ["init", "--quiet", "--bare", "--template=", ".git/hub.git"] },
  { git: ["remote", "add", "origin", ".git/hub.git"] },
  does(A, "config set sync.ledger_branch cotenant-sync"),
  does(A, "config set sync.global_path_override $repo/.git/machine"),
  does(ADA, "trust"),
  does(A, "sync --setup-ledger"),
];
const BY_GIT = ["E_RETRIES_EXHAUSTED", "E_REMOTE_UNREACHABLE", "E_GIT", "E_LEDGER_NOT_CONFIGURED"];
const IS_CLAIMED: Scenario["proofs"] = [
  [A, "claim renew $issue", 0],
  [OTHER, "claim acquire $issue", 1],
];
const IS_AS: Scenario["proofs"] = [
  [A, "lock renew a.ts", 0],
  [OTHER, "lock acquire a.ts", 1],
];
const IS_FREE: Scenario["proofs"] = [
  [A, "lock renew a.ts", 4],
  [OTHER, "lock acquire a.ts", 0],
];

export function words(text: string): string[] {
  return text.split(" ");
}

export function scenario(
  name: string,
  before: readonly Step[],
  agent: string,
  command: string,
  event: string | null,
  rest: Partial<Scenario> = {},
): Scenario {
  return {
    name,
    before,
    agent,
    event,
    args: words(command),
    isCore: false,
    leases: 1,
    isRepeatable: false,
    again: [0],
    proofs: [],
    isOneStep: true,
    isOpen: true,
    refusals: [],
    issue: null,
    sane: null,
    ...rest,
  };
}

/** Every command that changes something, and every state that changes how one goes about it. */
export const SCENARIOS: readonly Scenario[] = [
  scenario(
    "acquire",
    [does(A, `lock acquire first.ts ${LONG}`)],
    A,
    `lock acquire a.ts ${LONG}`,
    "claim.acquired",
    {
      isCore: true,
      proofs: IS_AS,
    },
  ),
  scenario(
    "rotate",
    [HELD[0]!, { agent: A, renew: "first.ts", untilBytes: ROTATE_BYTES }],
    A,
    `lock acquire a.ts b.ts c.ts d.ts ${LONG}`,
    "claim.acquired",
    { isCore: true, leases: 4, proofs: IS_AS },
  ),
  scenario(
    "acquire-several",
    [does(A, `lock acquire first.ts ${LONG}`)],
    A,
    `lock acquire a.ts lib/b.ts --resource db ${LONG}`,
    "claim.acquired",
    {
      isCore: true,
      leases: 3,
      proofs: [...IS_AS, [OTHER, "lock acquire lib/b.ts", 1], [A, "lock release lib/b.ts", 0]],
    },
  ),
  scenario("release", HELD, A, "lock release a.ts", "claim.released", {
    isCore: true,
    again: [4],
    proofs: IS_FREE,
  }),
  scenario("renew", HELD, A, `lock renew a.ts ${LONG}`, "claim.renewed", {
    isCore: true,
    isRepeatable: true,
    proofs: IS_AS,
  }),
  scenario("transfer", CLAIMED, A, `claim transfer $issue --to-agent ${B} --reason r`, "claim.transferred", {
    isCore: true,
    again: [8],
    proofs: [
      [A, "claim renew $issue", 8],
      [B, "claim renew $issue", 0],
    ],
  }),
  scenario("evict", CLAIMED, ADA, "claim force-evict $issue --reason r", "claim.evicted", {
    isCore: true,
    again: [4],
    proofs: [
      [A, "claim renew $issue", 8],
      [OTHER, "claim acquire $issue", 0],
    ],
  }),
  scenario("recover", [...HELD, { spoil: "flip a bit" }], A, "recover", null, {
    isCore: true,
    isOpen: false,
    proofs: [[A, "lock acquire b.ts", 0]],
  }),

  scenario("acquire-first", [], A, `lock acquire a.ts ${LONG}`, "claim.acquired", { proofs: IS_AS }),
  scenario(
    "acquire-once",
    HELD.slice(0, 1),
    A,
    `lock acquire a.ts ${LONG} --request-id $request`,
    "claim.acquired",
    {
      proofs: IS_AS,
    },
  ),
  scenario(
    "acquire-expired",
    [does(B, "lock acquire a.ts --ttl 1"), { wait: 1.2 }],
    A,
    `lock acquire a.ts ${LONG}`,
    "claim.acquired",
    { proofs: [...IS_AS, [B, "lock renew a.ts", 8]] },
  ),
  scenario(
    "acquire-again",
    [{ agent: A, acquire: "file:a.ts", ttlSecs: 7200, agoSecs: 4000 }],
    A,
    `lock acquire a.ts ${LONG}`,
    // Every sign of life renews it, also one that fails: no line is this command's alone.
    null,
    { proofs: IS_AS },
  ),
  scenario(
    "upkeep",
    [{ agent: A, acquire: "file:first.ts", ttlSecs: 7200, agoSecs: 4000 }],
    A,
    `lock acquire a.ts ${LONG}`,
    "claim.acquired",
    { proofs: IS_AS },
  ),
  scenario(
    "steal",
    [does(B, `lock acquire a.ts ${LONG}`)],
    ADA,
    `lock steal a.ts ${LONG} --reason r`,
    "claim.acquired",
    {
      proofs: [
        [ADA, "lock renew a.ts", 0],
        [B, "lock renew a.ts", 8],
        [OTHER, "lock acquire a.ts", 1],
      ],
    },
  ),
  scenario("wait", [does(B, `lock acquire a.ts ${LONG}`)], A, "lock acquire a.ts --wait --timeout 0", null, {
    proofs: [
      [B, "lock release a.ts", 0],
      [OTHER, "lock acquire a.ts", 0],
    ],
  }),
  scenario("claim", [ISSUE], A, `claim acquire $issue ${LONG}`, "claim.acquired", {
    proofs: [
      [A, "claim renew $issue", 0],
      [OTHER, "claim acquire $issue", 1],
    ],
  }),
  scenario(
    "claim-renew-once",
    CLAIMED,
    A,
    `claim renew $issue ${LONG} --request-id $request`,
    "claim.renewed",
    {
      proofs: [[OTHER, "claim acquire $issue", 1]],
    },
  ),
  scenario("heartbeat", CLAIMED, A, "claim heartbeat $issue", "claim.heartbeat", {
    isRepeatable: true,
    proofs: [[OTHER, "claim acquire $issue", 1]],
  }),
  scenario("release-once", HELD, A, "lock release a.ts --request-id $request", "claim.released", {
    proofs: IS_FREE,
  }),
  scenario(
    "transfer-once",
    CLAIMED,
    A,
    `claim transfer $issue --to-agent ${B} --reason r --request-id $request`,
    "claim.transferred",
    { proofs: [[B, "claim renew $issue", 0]] },
  ),
  scenario(
    "adopt",
    [...CLAIMED, does(A, `claim transfer $issue --to-agent ${B} --reason r`)],
    B,
    `claim renew $issue ${LONG}`,
    "claim.renewed",
    {
      isRepeatable: true,
      proofs: [
        [B, "claim release $issue", 0],
        [OTHER, "claim acquire $issue", 0],
      ],
    },
  ),
  scenario("stop", HELD, A, "stop", "claim.stopped", {
    isOneStep: false,
    leases: 2,
    isRepeatable: true,
    proofs: IS_AS,
  }),
  scenario(
    "gc",
    [does(B, "lock acquire a.ts --ttl 1"), ...HELD.slice(0, 1), { wait: 1.2 }, { spoil: "age the secrets" }],
    B,
    "gc",
    "claim.evicted",
    {
      isOneStep: false,
      proofs: [
        [OTHER, "lock acquire a.ts", 0],
        [A, "lock renew first.ts", 0],
      ],
    },
  ),
  scenario("lock-gc", [does(B, "lock acquire a.ts --ttl 1"), { wait: 1.2 }], A, "lock gc", "claim.evicted", {
    isOneStep: false,
    proofs: [[OTHER, "lock acquire a.ts", 0]],
  }),
  scenario("compact", HELD, A, "gc --compact", null, { isOneStep: false, proofs: IS_AS }),
  scenario("recover-lost", [...HELD, { spoil: "lose the log" }], A, "recover", null, {
    isOpen: false,
    proofs: IS_AS,
  }),
  scenario(
    "rebuild",
    [...HELD.slice(0, 1), { spoil: "lose the index" }],
    A,
    `lock acquire a.ts ${LONG}`,
    "claim.acquired",
    {
      proofs: IS_AS,
    },
  ),
  scenario(
    "torn-tail",
    [...HELD.slice(0, 1), { spoil: "tear the tail" }],
    A,
    `lock acquire a.ts ${LONG}`,
    "claim.acquired",
    {
      proofs: IS_AS,
    },
  ),
  scenario(
    "failed-sync",
    [...HELD.slice(0, 1), { spoil: "fail a sync" }],
    A,
    `lock acquire a.ts ${LONG}`,
    "claim.acquired",
    {
      proofs: IS_AS,
    },
  ),
  // Process 1 is there for as long as anything is: what is bound to it stays.
  scenario("guard-check", HELD.slice(0, 1), A, `guard check a.ts ${BOUND}`, "claim.acquired", {
    proofs: [
      [A, `guard check a.ts ${BOUND}`, 0],
      [OTHER, "lock acquire a.ts", 1],
    ],
  }),
  // Refused, and on record as such: a line is no sign of success here.
  scenario("guard-denied", GUARDED, B, `guard check a.ts ${BOUND}`, null, {
    again: [1],
    proofs: [[OTHER, "lock acquire a.ts", 1]],
  }),
  scenario("guard-stop", GUARDED, A, "guard stop", "claim.stopped", {
    isOneStep: false,
    isRepeatable: true,
    proofs: [[OTHER, "lock acquire a.ts", 1]],
  }),
  scenario("guard-end", GUARDED, A, "guard end", "claim.released", {
    isOneStep: false,
    proofs: [[OTHER, "lock acquire a.ts", 0]],
  }),
  scenario("agent-install", HELD.slice(0, 1), A, "agent install claude cursor", null, {
    proofs: [
      [A, "agent install claude cursor", 0],
      [A, "agent uninstall --all", 0],
      [A, "lock renew first.ts", 0],
    ],
  }),
  scenario(
    "agent-uninstall",
    [HELD[0]!, does(A, "agent install claude cursor")],
    A,
    "agent uninstall --all",
    null,
    { proofs: [[A, "lock renew first.ts", 0]] },
  ),
  scenario("init", [], A, "init", null, { proofs: [[A, "lock acquire a.ts", 0]] }),
  scenario("worktree-init", [], A, "worktree init", null, { proofs: [[A, "lock acquire a.ts", 0]] }),
  scenario("issue-create", [], A, "issue create --title work", "issue.written", {
    leases: 0,
    isRepeatable: true,
    proofs: [[OTHER, "issue list", 0]],
  }),
  scenario(
    "issue-update",
    CLAIMED,
    A,
    "issue update $issue --state in_progress --label area:x",
    "issue.written",
    {
      isCore: true,
      leases: 0,
      issue: { old: "in_progress, version 1, labels ", new: "in_progress, version 2, labels area:x" },
      proofs: [[OTHER, "claim acquire $issue --if-ready", 1]],
    },
  ),
  scenario(
    "gate-pass",
    [
      ...CLAIMED,
      does(ADA, "gate define review"),
      does(A, "gate add $issue review"),
      does(A, "issue update $issue --state done"),
    ],
    ADA,
    "gate pass $issue review --request-id $request",
    "issue.written",
    {
      leases: 0,
      issue: { old: "gated, version 3, labels ", new: "done, version 4, labels " },
      proofs: [[OTHER, "gate show $issue review", 0]],
    },
  ),
  scenario(
    "label-once",
    [...CLAIMED, does(A, "label add $issue type:bug")],
    A,
    "label add $issue type:story --request-id $request",
    "issue.written",
    {
      leases: 0,
      issue: {
        old: "in_progress, version 2, labels type:bug",
        new: "in_progress, version 3, labels type:story",
      },
    },
  ),
  scenario("issue-delete", CLAIMED, A, "issue delete $issue", "issue.written", {
    leases: 0,
    again: [4],
    issue: { old: "in_progress, version 1, labels ", new: "deleted" },
    proofs: [[OTHER, "issue show $issue", 4]],
  }),
  scenario("issue-comment", [ISSUE], A, "issue comment $issue --text done", "issue.commented", {
    leases: 0,
    isRepeatable: true,
    proofs: [[OTHER, "issue show $issue", 0]],
  }),
  // One step here, another at the remote: whoever asks again finds the first, and goes on.
  scenario("ledger-claim", SHARED, A, "claim acquire $issue", "claim.acquired", {
    proofs: IS_CLAIMED,
    isOneStep: false,
    isRepeatable: true,
    refusals: BY_GIT,
  }),
  scenario("ledger-offline", SHARED, A, "claim acquire $issue --offline", "claim.acquired", {
    proofs: IS_CLAIMED,
    isOneStep: false,
    isRepeatable: true,
    refusals: BY_GIT,
  }),
  scenario(
    "ledger-release",
    [...SHARED, does(A, `claim acquire $issue ${LONG}`)],
    A,
    "claim release $issue",
    "claim.released",
    { again: [0, 4], proofs: [[OTHER, "claim acquire $issue", 0]], isOneStep: false, refusals: BY_GIT },
  ),
  scenario(
    "ledger-reconcile",
    [...SHARED, does(A, `claim acquire $issue --offline ${LONG}`)],
    A,
    "sync --reconcile",
    "sync.confirmed",
    { leases: 0, proofs: IS_CLAIMED, isOneStep: false, isRepeatable: true, refusals: BY_GIT },
  ),
  ...snapshotScenarios(scenario, does),
];

export function scenarioOf(name: string): Scenario {
  const found = SCENARIOS.find((candidate) => candidate.name === name);
  if (found === undefined)
    throw new Error(`no scenario "${name}"; there are ${SCENARIOS.map((s) => s.name).join(", ")}`);
  return found;
}
