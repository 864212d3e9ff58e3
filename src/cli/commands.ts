import type { Command } from "./grammar/command";

interface Listed {
  readonly summary: string;
  /** For programs of ours only: no help mentions it. */
  readonly isHidden?: boolean;
  readonly load: () => Promise<Command>;
}

type Module = () => Promise<{ readonly command: Command }>;

function one(summary: string, load: Module): Listed {
  return { summary, load: async () => (await load()).command };
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

/** Every command, with what its group's help says of it. Its code is loaded only when it runs. */
export const COMMANDS: Readonly<Record<string, Listed>> = {
  init: one("prepare this repository", () => import("../features/setup/commands/init")),
  deinit: one("undo what init and leases left behind", () => import("../features/setup/commands/deinit")),
  status: one("who holds what, and what needs a person", () => import("../features/watch/commands/status")),
  ...verbs(null, () => import("../features/locks/commands/pause"), {
    pause: "grant nothing new for a while",
    resume: "go on after a pause",
  }),
  events: one("what happened, and what happens", () => import("../features/watch/commands/events")),
  stats: one("who holds how long, and where it jams", () => import("../features/watch/commands/stats")),
  ...verbs("claim", () => import("../features/claims/commands/claims"), {
    acquire: "claim an issue",
    renew: "extend a claim",
    heartbeat: "show that work goes on",
    release: "give a claim back",
    transfer: "hand a claim over",
    forceEvict: "end somebody's claim",
    approve: "agree to end somebody's claim",
    proposals: "evictions that wait for others",
    status: "all claims, yours first",
    list: "active claims, for programs",
    create: "write an issue down and claim it",
    next: "claim what should be done next",
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
  "worktree info": one(
    "this worktree's identity",
    () => import("../features/worktrees/commands/worktree-info"),
  ),
  "worktree list": one(
    "all worktrees and what they hold",
    () => import("../features/worktrees/commands/worktree-list"),
  ),
  "worktree init": one(
    "give this worktree its identity now",
    () => import("../features/worktrees/commands/worktree-init"),
  ),
  "worktree create": one(
    "make one for a branch or an issue",
    () => import("../features/worktrees/commands/worktree-create"),
  ),
  "worktree remove": one(
    "take one away, and lose nothing",
    () => import("../features/worktrees/commands/worktree-remove"),
  ),
  "worktree lock": one("be its only writer", () => import("../features/worktrees/commands/worktree-lock")),
  "worktree renew": one("extend its lock", () => import("../features/worktrees/commands/worktree-renew")),
  "worktree unlock": one(
    "give its lock back",
    () => import("../features/worktrees/commands/worktree-unlock"),
  ),
  "worktree steal": one(
    "take over a lock that ran out",
    () => import("../features/worktrees/commands/worktree-steal"),
  ),
  "worktree access": one(
    "exclusive or shared",
    () => import("../features/worktrees/commands/worktree-access"),
  ),
  snapshot: one("keep this worktree as it is", () => import("../features/snapshots/commands/snapshot")),
  "snapshot diff": one(
    "what differs between two, or since one",
    () => import("../features/snapshots/commands/snapshot-diff"),
  ),
  "snapshot prune": one("take old ones away", () => import("../features/snapshots/commands/snapshot-prune")),
  history: one("what was kept, and when", () => import("../features/snapshots/commands/history")),
  restore: one("bring a snapshot back", () => import("../features/snapshots/commands/restore")),
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
  "config show": one(
    "every setting and where it came from",
    () => import("../features/setup/commands/config-show"),
  ),
  "config get": one("one setting's value", () => import("../features/setup/commands/config-get")),
  "config set": one("change a setting", () => import("../features/setup/commands/config-set")),
  "config reset": one("back to the next source", () => import("../features/setup/commands/config-reset")),
  "config show-hierarchy": one(
    "types of issues, broadest first",
    () => import("../features/setup/commands/config-show-hierarchy"),
  ),
  "config validate": one(
    "what is wrong in any source",
    () => import("../features/setup/commands/config-validate"),
  ),
  trust: one("allow what this repository loosens", () => import("../features/setup/commands/trust")),
  "daemon start": one("look after leases in the background", () => import("../daemon/commands/daemon-start")),
  "daemon stop": one("end it", () => import("../daemon/commands/daemon-stop")),
  "daemon status": one("whether it runs, and what it does", () => import("../daemon/commands/daemon-status")),
  "daemon install": one(
    "print what makes systemd or launchd run it",
    () => import("../daemon/commands/daemon-install"),
  ),
  "daemon run": one("run it in the foreground", () => import("../daemon/commands/daemon-run")),
  "validate leases": one(
    "log, index and what stands",
    () => import("../features/doctor/commands/validate-leases"),
  ),
  "validate config": one(
    "every source of configuration",
    () => import("../features/doctor/commands/validate-config"),
  ),
  "validate divergence": one(
    "whether the main branch's tip is in it",
    () => import("../features/doctor/commands/validate-divergence"),
  ),
  "validate commits": one(
    "commits against the claims of their time",
    () => import("../features/hooks/commands/validate-commits"),
  ),
  "validate all": one(
    "all that should always hold",
    () => import("../features/doctor/commands/validate-all"),
  ),
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
  "hooks install": one("have Git call cotenant", () => import("../features/hooks/commands/hooks-install")),
  "hooks uninstall": one("take it out again", () => import("../features/hooks/commands/hooks-uninstall")),
  "hooks status": one("how each hook stands", () => import("../features/hooks/commands/hooks-status")),
  "agent install": one(
    "have a harness ask before each write",
    () => import("../features/harnesses/commands/agent-install"),
  ),
  "agent uninstall": one("take it out again", () => import("../features/harnesses/commands/agent-uninstall")),
  "agent list": one(
    "which harnesses ask, and how",
    () => import("../features/harnesses/commands/agent-list"),
  ),
  "agent doctor": one(
    "try each, and show what it covers",
    () => import("../features/harnesses/commands/agent-doctor"),
  ),
  publish: one("commit to a branch without a checkout", () => import("../features/publish/commands/publish")),
  "land add": one("add branches to the merge queue", () => import("../features/land/commands/land-add")),
  "land list": one("what waits, and what was put aside", () => import("../features/land/commands/land-list")),
  "land remove": one("take one out of the queue", () => import("../features/land/commands/land-remove")),
  "land retry": one("try one again that was put aside", () => import("../features/land/commands/land-retry")),
  "land pause": one("land nothing for a while", () => import("../features/land/commands/land-pause")),
  "land resume": one("go on after a pause", () => import("../features/land/commands/land-resume")),
  "land run": one("check, and land what passes", () => import("../features/land/commands/land-run")),
  dispatch: one(
    "have agents work on issues until none is left",
    () => import("../features/dispatch/commands/dispatch"),
  ),
  "dispatch status": one(
    "what each worker does",
    () => import("../features/dispatch/commands/dispatch-status"),
  ),
  "dispatch logs": one("what an agent printed", () => import("../features/dispatch/commands/dispatch-logs")),
  "dispatch stop": one(
    "take no more, or stop at once",
    () => import("../features/dispatch/commands/dispatch-stop"),
  ),
  exec: one("run a command with caches of its own", () => import("../features/exec/commands/exec")),
  doctor: one("what is wrong, and what to do next", () => import("../features/doctor/commands/doctor")),
  info: one("where everything is, and who you are", () => import("../features/watch/commands/info")),
  recover: one("mend a damaged log", () => import("../features/doctor/commands/recover")),
  gc: one("clear away what has lapsed", () => import("../features/doctor/commands/gc")),
  demo: one("eight agents in a scratch repository", () => import("../demo/commands/demo")),
  completion: one("completion for your shell", () => import("./completion/completion")),
  "hook pre-commit": {
    summary: "what Git's pre-commit hook calls",
    isHidden: true,
    load: async () => (await import("../features/hooks/commands/hook-pre-commit")).command,
  },
  "hook prepare-commit-msg": {
    summary: "what Git's prepare-commit-msg hook calls",
    isHidden: true,
    load: async () => (await import("../features/hooks/commands/hook-prepare-commit-msg")).command,
  },
  "hook pre-push": {
    summary: "what Git's pre-push hook calls",
    isHidden: true,
    load: async () => (await import("../features/hooks/commands/hook-pre-push")).command,
  },
  "hook pre-receive": {
    summary: "what a server's pre-receive hook calls",
    isHidden: true,
    load: async () => (await import("../features/hooks/commands/hook-pre-receive")).command,
  },
  "hook post-commit": {
    summary: "what Git's post-commit hook calls",
    isHidden: true,
    load: async () => (await import("../features/hooks/commands/hook-post-commit")).command,
  },
  "hook worktree-create": {
    summary: "what a harness calls to have a worktree made",
    isHidden: true,
    load: async () => (await import("../features/worktrees/commands/hook-worktree-create")).command,
  },
  "hook worktree-remove": {
    summary: "what a harness calls when a worktree is to go",
    isHidden: true,
    load: async () => (await import("../features/worktrees/commands/hook-worktree-remove")).command,
  },
  complete: {
    summary: "what could come next",
    isHidden: true,
    load: async () => (await import("./completion/complete")).command,
  },
  "merge-issue": {
    summary: "merge an issue.json, for Git",
    isHidden: true,
    load: async () => (await import("../features/issues/commands/merge-issue")).command,
  },
  version: one("versions of cotenant, Node and Git", () => import("./version")),
};
