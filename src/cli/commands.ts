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
  }),
  "claim create": one(
    "write an issue down and claim it",
    () => import("../features/claims/commands/claim-create"),
  ),
  "claim next": one("claim what should be done next", () => import("../features/claims/commands/claim-next")),
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
  "issue create": one("write down work to be done", () => import("../features/issues/commands/issue-create")),
  "issue show": one("one issue, whole", () => import("../features/issues/commands/issue-show")),
  "issue list": one("all issues", () => import("../features/issues/commands/issue-list")),
  "issue update": one("change an issue", () => import("../features/issues/commands/issue-update")),
  "issue delete": one("delete an issue", () => import("../features/issues/commands/issue-delete")),
  "issue assign": one("say who should do it", () => import("../features/issues/commands/issue-assign")),
  "issue unassign": one("take the assignee off", () => import("../features/issues/commands/issue-unassign")),
  "issue reject": one("close without doing", () => import("../features/issues/commands/issue-reject")),
  "issue reopen": one("bring back what was closed", () => import("../features/issues/commands/issue-reopen")),
  "issue comment": one("say something about it", () => import("../features/issues/commands/issue-comment")),
  "dep add": one("one issue needs another", () => import("../features/issues/commands/dep-add")),
  "dep rm": one("or does not", () => import("../features/issues/commands/dep-rm")),
  "label add": one("label an issue", () => import("../features/issues/commands/label-add")),
  "label rm": one("take labels off", () => import("../features/issues/commands/label-rm")),
  "gate define": one("what issues may have to pass", () => import("../features/gates/commands/gate-define")),
  "gate list": one("gates, and how an issue stands", () => import("../features/gates/commands/gate-list")),
  "gate show": one("one gate, or its last result", () => import("../features/gates/commands/gate-show")),
  "gate remove": one("take one off, or undefine it", () => import("../features/gates/commands/gate-remove")),
  "gate add": one("give an issue gates to pass", () => import("../features/gates/commands/gate-add")),
  "gate pass": one("say that one is passed", () => import("../features/gates/commands/gate-pass")),
  "gate fail": one("say that one is not", () => import("../features/gates/commands/gate-fail")),
  "gate run": one("run an issue's automated gates", () => import("../features/gates/commands/gate-run")),
  "doc add": one("name a file as an issue's document", () => import("../features/issues/commands/doc-add")),
  "doc list": one("an issue's documents", () => import("../features/issues/commands/doc-list")),
  "doc show": one("what is in one", () => import("../features/issues/commands/doc-show")),
  "doc history": one("the commits that changed it", () => import("../features/issues/commands/doc-history")),
  "doc remove": one("take one off", () => import("../features/issues/commands/doc-remove")),
  "query all": one("all issues of this worktree", () => import("../features/issues/commands/query-all")),
  "query available": one(
    "what can be worked on now",
    () => import("../features/issues/commands/query-available"),
  ),
  "query blocked": one("what waits, and for what", () => import("../features/issues/commands/query-blocked")),
  "query strategic": one("milestones and epics", () => import("../features/issues/commands/query-strategic")),
  "query closed": one("what is over", () => import("../features/issues/commands/query-closed")),
  search: one("find issues by their words", () => import("../features/issues/commands/search")),
  "graph show": one("what an issue needs, as a tree", () => import("../features/issues/commands/graph-show")),
  "graph downstream": one(
    "what needs an issue",
    () => import("../features/issues/commands/graph-downstream"),
  ),
  "graph roots": one("what needs nothing", () => import("../features/issues/commands/graph-roots")),
  "graph export": one(
    "the whole graph, for other programs",
    () => import("../features/issues/commands/graph-export"),
  ),
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
  "dispatch status": one(
    "what each worker does",
    () => import("../features/dispatch/commands/dispatch-status"),
  ),
  "dispatch logs": one("what an agent printed", () => import("../features/dispatch/commands/dispatch-logs")),
  "dispatch stop": one(
    "take no more, or stop at once",
    () => import("../features/dispatch/commands/dispatch-stop"),
  ),
  ...verbs(null, () => import("../features/exec/commands/exec"), {
    exec: "run a command with caches of its own",
  }),
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
    load: async () => (await import("../features/worktrees/commands/hook-worktree")).worktreeCreate,
  },
  "hook worktree-remove": {
    summary: "what a harness calls when a worktree is to go",
    isHidden: true,
    load: async () => (await import("../features/worktrees/commands/hook-worktree")).worktreeRemove,
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
