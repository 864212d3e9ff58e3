import type { Command } from "./grammar/command";

interface Listed {
  readonly summary: string;
  /** For programs of ours only: no help mentions it. */
  readonly isHidden?: boolean;
  readonly load: () => Promise<Command>;
}

/** One by itself, or one of several that share a file and are not of one group. */
function one<Name extends string = "command">(
  summary: string,
  load: () => Promise<Readonly<Record<NoInfer<Name>, Command>>>,
  name = "command" as Name,
): Listed {
  return { summary, load: async () => (await load())[name] };
}

function hidden(listed: Listed): Listed {
  return { ...listed, isHidden: true };
}

/** Commands that share a file, each exported by its verb: `forceEvict` is `force-evict`. Without a group, the verb is all. */
function verbs<M extends object>(
  group: string | null,
  load: () => Promise<M>,
  summaries: { readonly [Verb in keyof M & string]?: string },
): Record<string, Listed> {
  const listed: Record<string, Listed> = {};
  for (const [verb, summary] of Object.entries(summaries) as [keyof M & string, string][]) {
    const word = verb.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    const name = group === null ? word : `${group} ${word}`;
    listed[name] = { summary, load: async () => (await load())[verb] as Command };
  }
  return listed;
}

const doctor = () => import("../features/doctor/commands/doctor");
const hook = () => import("../features/hooks/commands/hook-git");

/** Every command, with what its group's help says of it. Its code is loaded only when it runs. */
export const COMMANDS: Readonly<Record<string, Listed>> = {
  ...verbs(null, () => import("../features/setup/commands/setup"), {
    init: "prepare this repository",
    deinit: "undo what init and leases left behind",
  }),
  status: one("who holds what, and what needs a person", () => import("../features/watch/commands/status")),
  ...verbs(null, () => import("../features/locks/commands/pause"), {
    pause: "grant nothing new for a while",
    resume: "go on after a pause",
  }),
  events: one("what happened, and what happens", () => import("../features/watch/commands/events")),
  stats: one("who holds how long, and where it jams", () => import("../features/watch/commands/stats")),
  ...verbs("claim", () => import("../features/claims/commands/claims"), {
    acquire: "claim an issue",
    create: "write an issue down and claim it",
    next: "claim what should be done next",
    renew: "extend a claim",
    heartbeat: "show that work goes on",
    release: "give a claim back",
    transfer: "hand a claim over",
    forceEvict: "end somebody's claim",
    approve: "agree to end somebody's claim",
    proposals: "evictions that wait for others",
    status: "all claims, yours first",
    list: "active claims, for programs",
  }),
  sync: one(
    "exchange claims and issues with other machines",
    () => import("../features/ledger/commands/sync"),
  ),
  ...verbs("lock", () => import("../features/locks/commands/locks"), {
    acquire: "lease files, directories, resources, refs",
    renew: "extend a lock",
    release: "give a lock back",
    steal: "take over somebody's lock",
    status: "locks, waiters and hints",
    gc: "log the end of what has lapsed",
  }),
  ...verbs("worktree", () => import("../features/worktrees/commands/worktrees"), {
    info: "this worktree's identity",
    list: "all worktrees and what they hold",
    init: "give this worktree its identity now",
    create: "make one for a branch or an issue",
    remove: "take one away, and lose nothing",
  }),
  ...verbs("worktree", () => import("../features/worktrees/commands/writer-lock"), {
    lock: "be its only writer",
    renew: "extend its lock",
    unlock: "give its lock back",
    steal: "take over a lock that ran out",
  }),
  ...verbs("worktree", () => import("../features/worktrees/commands/worktrees"), {
    access: "exclusive or shared",
  }),
  ...verbs(null, () => import("../features/snapshots/commands/snapshots"), {
    snapshot: "keep this worktree as it is",
  }),
  ...verbs("snapshot", () => import("../features/snapshots/commands/snapshots"), {
    diff: "what differs between two, or since one",
    prune: "take old ones away",
  }),
  ...verbs(null, () => import("../features/snapshots/commands/snapshots"), {
    history: "what was kept, and when",
  }),
  ...verbs(null, () => import("../features/snapshots/commands/restore"), {
    restore: "bring a snapshot back",
  }),
  ...verbs("issue", () => import("../features/issues/commands/issues"), {
    create: "write down work to be done",
    show: "one issue, whole",
    list: "all issues",
    update: "change an issue",
    delete: "delete an issue",
    assign: "say who should do it",
    unassign: "take the assignee off",
    reject: "close without doing",
    reopen: "bring back what was closed",
    comment: "say something about it",
  }),
  ...verbs("dep", () => import("../features/issues/commands/deps"), {
    add: "one issue needs another",
    rm: "or does not",
  }),
  ...verbs("label", () => import("../features/issues/commands/labels"), {
    add: "label an issue",
    rm: "take labels off",
  }),
  ...verbs("gate", () => import("../features/gates/commands/gates"), {
    define: "what issues may have to pass",
    list: "gates, and how an issue stands",
    show: "one gate, or its last result",
    remove: "take one off, or undefine it",
    add: "give an issue gates to pass",
    pass: "say that one is passed",
    fail: "say that one is not",
    run: "run an issue's automated gates",
  }),
  ...verbs("doc", () => import("../features/issues/commands/docs"), {
    add: "name a file as an issue's document",
    list: "an issue's documents",
    show: "what is in one",
    history: "the commits that changed it",
    remove: "take one off",
  }),
  ...verbs("query", () => import("../features/issues/commands/queries"), {
    all: "all issues of this worktree",
    available: "what can be worked on now",
    blocked: "what waits, and for what",
    strategic: "milestones and epics",
    closed: "what is over",
  }),
  search: one("find issues by their words", () => import("../features/issues/commands/search")),
  ...verbs("graph", () => import("../features/issues/commands/graphs"), {
    show: "what an issue needs, as a tree",
    downstream: "what needs an issue",
    roots: "what needs nothing",
    export: "the whole graph, for other programs",
  }),
  ...verbs("config", () => import("../features/setup/commands/config"), {
    show: "every setting and where it came from",
    get: "one setting's value",
    set: "change a setting",
    reset: "back to the next source",
    showHierarchy: "types of issues, broadest first",
    validate: "what is wrong in any source",
  }),
  trust: one("allow what this repository loosens", () => import("../features/setup/commands/trust")),
  ...verbs("daemon", () => import("../daemon/commands/daemon"), {
    start: "look after leases in the background",
    stop: "end it",
    status: "whether it runs, and what it does",
    install: "print what makes systemd or launchd run it",
  }),
  "daemon run": one("run it in the foreground", () => import("../daemon/commands/daemon-run")),
  "validate leases": one("log, index and what stands", doctor, "validateLeases"),
  "validate config": one("every source of configuration", doctor, "validateConfig"),
  "validate divergence": one("whether the main branch's tip is in it", doctor, "validateDivergence"),
  "validate commits": one(
    "commits against the claims of their time",
    () => import("../features/hooks/commands/validate-commits"),
  ),
  "validate all": one("all that should always hold", doctor, "validateAll"),
  "guard check": one(
    "what a harness asks before each write",
    () => import("../features/guard/commands/guard-check"),
  ),
  "guard stop": one("a session's turn is over", () => import("../features/guard/commands/guard-stop")),
  "guard end": one("a session is over", () => import("../features/guard/commands/guard-end")),
  "guard status": one(
    "who edits what, who waits, who is blocked",
    () => import("../features/guard/commands/guard-status"),
  ),
  "guard report": one(
    "the reports of those who are blocked",
    () => import("../features/guard/commands/guard-report"),
  ),
  "guard retry": one(
    "let those go on who were blocked",
    () => import("../features/guard/commands/guard-retry"),
  ),
  "guard settle": one(
    "somebody has looked at what was changed under a lease",
    () => import("../features/guard/commands/guard-settle"),
  ),
  ...verbs("hooks", () => import("../features/hooks/commands/hooks"), {
    install: "have Git call cotenant",
    uninstall: "take it out again",
    status: "how each hook stands",
  }),
  ...verbs("agent", () => import("../features/harnesses/commands/agent"), {
    install: "have a harness ask before each write",
    uninstall: "take it out again",
    list: "which harnesses ask, and how",
    doctor: "try each, and show what it covers",
  }),
  ...verbs(null, () => import("../features/publish/commands/publish"), {
    publish: "commit to a branch without a checkout",
  }),
  ...verbs("land", () => import("../features/land/commands/land"), {
    add: "add branches to the merge queue",
    list: "what waits, and what was put aside",
    remove: "take one out of the queue",
    retry: "try one again that was put aside",
    pause: "land nothing for a while",
    resume: "go on after a pause",
    run: "check, and land what passes",
  }),
  dispatch: one(
    "have agents work on issues until none is left",
    () => import("../features/dispatch/commands/dispatch"),
  ),
  ...verbs("dispatch", () => import("../features/dispatch/commands/runs"), {
    status: "what each worker does",
    logs: "what an agent printed",
    stop: "take no more, or stop at once",
  }),
  ...verbs(null, () => import("../features/exec/commands/exec"), {
    exec: "run a command with caches of its own",
  }),
  doctor: one("what is wrong, and what to do next", doctor, "doctor"),
  info: one("where everything is, and who you are", () => import("../features/watch/commands/info")),
  recover: one("mend a damaged log", doctor, "recover"),
  gc: one("clear away what has lapsed", doctor, "gc"),
  demo: one("eight agents in a scratch repository", () => import("../demo/commands/demo")),
  completion: one("completion for your shell", () => import("./completion/completion")),
  "hook pre-commit": hidden(one("what Git's pre-commit hook calls", hook, "preCommit")),
  "hook prepare-commit-msg": hidden(
    one("what Git's prepare-commit-msg hook calls", hook, "prepareCommitMessage"),
  ),
  "hook pre-push": hidden(one("what Git's pre-push hook calls", hook, "prePush")),
  "hook pre-receive": hidden(one("what a server's pre-receive hook calls", hook, "preReceive")),
  "hook post-commit": hidden(one("what Git's post-commit hook calls", hook, "postCommit")),
  "hook worktree-create": hidden(
    one(
      "what a harness calls to have a worktree made",
      () => import("../features/worktrees/commands/hook-worktree"),
      "worktreeCreate",
    ),
  ),
  "hook worktree-remove": hidden(
    one(
      "what a harness calls when a worktree is to go",
      () => import("../features/worktrees/commands/hook-worktree"),
      "worktreeRemove",
    ),
  ),
  complete: hidden(one("what could come next", () => import("./completion/complete"))),
  "merge-issue": hidden(
    one("merge an issue.json, for Git", () => import("../features/issues/commands/merge-issue")),
  ),
  version: one("versions of cotenant, Node and Git", () => import("./version")),
};
