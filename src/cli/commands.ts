import type { Command } from "./grammar/command";

interface Listed {
  readonly summary: string;
  /** For programs of ours only: no help mentions it. */
  readonly isHidden?: boolean;
  readonly load: () => Promise<{ readonly command: Command }>;
}

/** One of several commands that share a file. */
function one<Name extends string>(
  load: () => Promise<Readonly<Record<Name, Command>>>,
  name: Name,
): Listed["load"] {
  return async () => ({ command: (await load())[name] });
}

const agent = () => import("../features/harnesses/commands/agent");
const config = () => import("../features/setup/commands/config");
const doctor = () => import("../features/doctor/commands/doctor");
const hook = () => import("../features/hooks/commands/hook-git");
const hooks = () => import("../features/hooks/commands/hooks");
const setup = () => import("../features/setup/commands/setup");

/** Every command, with what its group's help says of it. Its code is loaded only when it runs. */
export const COMMANDS: Readonly<Record<string, Listed>> = {
  init: { summary: "prepare this repository", load: one(setup, "init") },
  deinit: { summary: "undo what init and leases left behind", load: one(setup, "deinit") },
  status: {
    summary: "who holds what, and what needs a person",
    load: () => import("../features/watch/commands/status"),
  },
  pause: { summary: "grant nothing new for a while", load: () => import("../features/locks/commands/pause") },
  resume: { summary: "go on after a pause", load: () => import("../features/locks/commands/resume") },
  events: {
    summary: "what happened, and what happens",
    load: () => import("../features/watch/commands/events"),
  },
  stats: {
    summary: "who holds how long, and where it jams",
    load: () => import("../features/watch/commands/stats"),
  },
  "claim acquire": {
    summary: "claim an issue",
    load: () => import("../features/claims/commands/claim-acquire"),
  },
  "claim create": {
    summary: "write an issue down and claim it",
    load: () => import("../features/claims/commands/claim-create"),
  },
  "claim next": {
    summary: "claim what should be done next",
    load: () => import("../features/claims/commands/claim-next"),
  },
  "claim renew": { summary: "extend a claim", load: () => import("../features/claims/commands/claim-renew") },
  "claim heartbeat": {
    summary: "show that work goes on",
    load: () => import("../features/claims/commands/claim-heartbeat"),
  },
  "claim release": {
    summary: "give a claim back",
    load: () => import("../features/claims/commands/claim-release"),
  },
  "claim transfer": {
    summary: "hand a claim over",
    load: () => import("../features/claims/commands/claim-transfer"),
  },
  "claim force-evict": {
    summary: "end somebody's claim",
    load: () => import("../features/claims/commands/claim-force-evict"),
  },
  "claim approve": {
    summary: "agree to end somebody's claim",
    load: () => import("../features/claims/commands/claim-approve"),
  },
  "claim proposals": {
    summary: "evictions that wait for others",
    load: () => import("../features/claims/commands/claim-proposals"),
  },
  "claim status": {
    summary: "all claims, yours first",
    load: () => import("../features/claims/commands/claim-status"),
  },
  "claim list": {
    summary: "active claims, for programs",
    load: () => import("../features/claims/commands/claim-list"),
  },
  sync: {
    summary: "exchange claims and issues with other machines",
    load: () => import("../features/ledger/commands/sync"),
  },
  "lock acquire": {
    summary: "lease files, directories, resources, refs",
    load: () => import("../features/locks/commands/lock-acquire"),
  },
  "lock renew": { summary: "extend a lock", load: () => import("../features/locks/commands/lock-renew") },
  "lock release": {
    summary: "give a lock back",
    load: () => import("../features/locks/commands/lock-release"),
  },
  "lock steal": {
    summary: "take over somebody's lock",
    load: () => import("../features/locks/commands/lock-steal"),
  },
  "lock status": {
    summary: "locks, waiters and hints",
    load: () => import("../features/locks/commands/lock-status"),
  },
  "lock gc": {
    summary: "log the end of what has lapsed",
    load: () => import("../features/locks/commands/lock-gc"),
  },
  "worktree info": {
    summary: "this worktree's identity",
    load: () => import("../features/worktrees/commands/worktree-info"),
  },
  "worktree list": {
    summary: "all worktrees and what they hold",
    load: () => import("../features/worktrees/commands/worktree-list"),
  },
  "worktree init": {
    summary: "give this worktree its identity now",
    load: () => import("../features/worktrees/commands/worktree-init"),
  },
  "worktree create": {
    summary: "make one for a branch or an issue",
    load: () => import("../features/worktrees/commands/worktree-create"),
  },
  "worktree remove": {
    summary: "take one away, and lose nothing",
    load: () => import("../features/worktrees/commands/worktree-remove"),
  },
  "worktree lock": {
    summary: "be its only writer",
    load: () => import("../features/worktrees/commands/worktree-lock"),
  },
  "worktree renew": {
    summary: "extend its lock",
    load: () => import("../features/worktrees/commands/worktree-renew"),
  },
  "worktree unlock": {
    summary: "give its lock back",
    load: () => import("../features/worktrees/commands/worktree-unlock"),
  },
  "worktree steal": {
    summary: "take over a lock that ran out",
    load: () => import("../features/worktrees/commands/worktree-steal"),
  },
  "worktree access": {
    summary: "exclusive or shared",
    load: () => import("../features/worktrees/commands/worktree-access"),
  },
  snapshot: {
    summary: "keep this worktree as it is",
    load: () => import("../features/snapshots/commands/snapshot"),
  },
  "snapshot diff": {
    summary: "what differs between two, or since one",
    load: () => import("../features/snapshots/commands/snapshot-diff"),
  },
  "snapshot prune": {
    summary: "take old ones away",
    load: () => import("../features/snapshots/commands/snapshot-prune"),
  },
  history: {
    summary: "what was kept, and when",
    load: () => import("../features/snapshots/commands/history"),
  },
  restore: { summary: "bring a snapshot back", load: () => import("../features/snapshots/commands/restore") },
  "issue create": {
    summary: "write down work to be done",
    load: () => import("../features/issues/commands/issue-create"),
  },
  "issue show": { summary: "one issue, whole", load: () => import("../features/issues/commands/issue-show") },
  "issue list": { summary: "all issues", load: () => import("../features/issues/commands/issue-list") },
  "issue update": {
    summary: "change an issue",
    load: () => import("../features/issues/commands/issue-update"),
  },
  "issue delete": {
    summary: "delete an issue",
    load: () => import("../features/issues/commands/issue-delete"),
  },
  "issue assign": {
    summary: "say who should do it",
    load: () => import("../features/issues/commands/issue-assign"),
  },
  "issue unassign": {
    summary: "take the assignee off",
    load: () => import("../features/issues/commands/issue-unassign"),
  },
  "issue reject": {
    summary: "close without doing",
    load: () => import("../features/issues/commands/issue-reject"),
  },
  "issue reopen": {
    summary: "bring back what was closed",
    load: () => import("../features/issues/commands/issue-reopen"),
  },
  "issue comment": {
    summary: "say something about it",
    load: () => import("../features/issues/commands/issue-comment"),
  },
  "dep add": {
    summary: "one issue needs another",
    load: () => import("../features/issues/commands/dep-add"),
  },
  "dep rm": { summary: "or does not", load: () => import("../features/issues/commands/dep-rm") },
  "label add": { summary: "label an issue", load: () => import("../features/issues/commands/label-add") },
  "label rm": { summary: "take labels off", load: () => import("../features/issues/commands/label-rm") },
  "gate define": {
    summary: "what issues may have to pass",
    load: () => import("../features/gates/commands/gate-define"),
  },
  "gate list": {
    summary: "gates, and how an issue stands",
    load: () => import("../features/gates/commands/gate-list"),
  },
  "gate show": {
    summary: "one gate, or its last result",
    load: () => import("../features/gates/commands/gate-show"),
  },
  "gate remove": {
    summary: "take one off, or undefine it",
    load: () => import("../features/gates/commands/gate-remove"),
  },
  "gate add": {
    summary: "give an issue gates to pass",
    load: () => import("../features/gates/commands/gate-add"),
  },
  "gate pass": {
    summary: "say that one is passed",
    load: () => import("../features/gates/commands/gate-pass"),
  },
  "gate fail": { summary: "say that one is not", load: () => import("../features/gates/commands/gate-fail") },
  "gate run": {
    summary: "run an issue's automated gates",
    load: () => import("../features/gates/commands/gate-run"),
  },
  "doc add": {
    summary: "name a file as an issue's document",
    load: () => import("../features/issues/commands/doc-add"),
  },
  "doc list": { summary: "an issue's documents", load: () => import("../features/issues/commands/doc-list") },
  "doc show": { summary: "what is in one", load: () => import("../features/issues/commands/doc-show") },
  "doc history": {
    summary: "the commits that changed it",
    load: () => import("../features/issues/commands/doc-history"),
  },
  "doc remove": { summary: "take one off", load: () => import("../features/issues/commands/doc-remove") },
  "query all": {
    summary: "all issues of this worktree",
    load: () => import("../features/issues/commands/query-all"),
  },
  "query available": {
    summary: "what can be worked on now",
    load: () => import("../features/issues/commands/query-available"),
  },
  "query blocked": {
    summary: "what waits, and for what",
    load: () => import("../features/issues/commands/query-blocked"),
  },
  "query strategic": {
    summary: "milestones and epics",
    load: () => import("../features/issues/commands/query-strategic"),
  },
  "query closed": { summary: "what is over", load: () => import("../features/issues/commands/query-closed") },
  search: { summary: "find issues by their words", load: () => import("../features/issues/commands/search") },
  "graph show": {
    summary: "what an issue needs, as a tree",
    load: () => import("../features/issues/commands/graph-show"),
  },
  "graph downstream": {
    summary: "what needs an issue",
    load: () => import("../features/issues/commands/graph-downstream"),
  },
  "graph roots": {
    summary: "what needs nothing",
    load: () => import("../features/issues/commands/graph-roots"),
  },
  "graph export": {
    summary: "the whole graph, for other programs",
    load: () => import("../features/issues/commands/graph-export"),
  },
  "config show": { summary: "every setting and where it came from", load: one(config, "show") },
  "config get": { summary: "one setting's value", load: one(config, "get") },
  "config set": { summary: "change a setting", load: one(config, "set") },
  "config reset": { summary: "back to the next source", load: one(config, "reset") },
  "config show-hierarchy": { summary: "types of issues, broadest first", load: one(config, "showHierarchy") },
  "config validate": { summary: "what is wrong in any source", load: one(config, "validate") },
  trust: {
    summary: "allow what this repository loosens",
    load: () => import("../features/setup/commands/trust"),
  },
  "daemon start": {
    summary: "look after leases in the background",
    load: () => import("../daemon/commands/daemon-start"),
  },
  "daemon stop": { summary: "end it", load: () => import("../daemon/commands/daemon-stop") },
  "daemon status": {
    summary: "whether it runs, and what it does",
    load: () => import("../daemon/commands/daemon-status"),
  },
  "daemon install": {
    summary: "print what makes systemd or launchd run it",
    load: () => import("../daemon/commands/daemon-install"),
  },
  "daemon run": { summary: "run it in the foreground", load: () => import("../daemon/commands/daemon-run") },
  "validate leases": { summary: "log, index and what stands", load: one(doctor, "validateLeases") },
  "validate config": { summary: "every source of configuration", load: one(doctor, "validateConfig") },
  "validate divergence": {
    summary: "whether the main branch's tip is in it",
    load: one(doctor, "validateDivergence"),
  },
  "validate commits": {
    summary: "commits against the claims of their time",
    load: () => import("../features/hooks/commands/validate-commits"),
  },
  "validate all": { summary: "all that should always hold", load: one(doctor, "validateAll") },
  "guard check": {
    summary: "what a harness asks before each write",
    load: () => import("../features/guard/commands/guard-check"),
  },
  "guard stop": {
    summary: "a session's turn is over",
    load: () => import("../features/guard/commands/guard-stop"),
  },
  "guard end": { summary: "a session is over", load: () => import("../features/guard/commands/guard-end") },
  "guard status": {
    summary: "who edits what, who waits, who is blocked",
    load: () => import("../features/guard/commands/guard-status"),
  },
  "guard report": {
    summary: "the reports of those who are blocked",
    load: () => import("../features/guard/commands/guard-report"),
  },
  "guard retry": {
    summary: "let those go on who were blocked",
    load: () => import("../features/guard/commands/guard-retry"),
  },
  "guard settle": {
    summary: "somebody has looked at what was changed under a lease",
    load: () => import("../features/guard/commands/guard-settle"),
  },
  "hooks install": { summary: "have Git call cotenant", load: one(hooks, "install") },
  "hooks uninstall": { summary: "take it out again", load: one(hooks, "uninstall") },
  "hooks status": { summary: "how each hook stands", load: one(hooks, "status") },
  "agent install": { summary: "have a harness ask before each write", load: one(agent, "install") },
  "agent uninstall": { summary: "take it out again", load: one(agent, "uninstall") },
  "agent list": { summary: "which harnesses ask, and how", load: one(agent, "list") },
  "agent doctor": { summary: "try each, and show what it covers", load: one(agent, "doctor") },
  publish: {
    summary: "commit to a branch without a checkout",
    load: () => import("../features/publish/commands/publish"),
  },
  "land add": {
    summary: "add branches to the merge queue",
    load: () => import("../features/land/commands/land-add"),
  },
  "land list": {
    summary: "what waits, and what was put aside",
    load: () => import("../features/land/commands/land-list"),
  },
  "land remove": {
    summary: "take one out of the queue",
    load: () => import("../features/land/commands/land-remove"),
  },
  "land retry": {
    summary: "try one again that was put aside",
    load: () => import("../features/land/commands/land-retry"),
  },
  "land pause": {
    summary: "land nothing for a while",
    load: () => import("../features/land/commands/land-pause"),
  },
  "land resume": {
    summary: "go on after a pause",
    load: () => import("../features/land/commands/land-resume"),
  },
  "land run": {
    summary: "check, and land what passes",
    load: () => import("../features/land/commands/land-run"),
  },
  dispatch: {
    summary: "have agents work on issues until none is left",
    load: () => import("../features/dispatch/commands/dispatch"),
  },
  "dispatch status": {
    summary: "what each worker does",
    load: () => import("../features/dispatch/commands/dispatch-status"),
  },
  "dispatch logs": {
    summary: "what an agent printed",
    load: () => import("../features/dispatch/commands/dispatch-logs"),
  },
  "dispatch stop": {
    summary: "take no more, or stop at once",
    load: () => import("../features/dispatch/commands/dispatch-stop"),
  },
  exec: {
    summary: "run a command with caches of its own",
    load: () => import("../features/exec/commands/exec"),
  },
  doctor: { summary: "what is wrong, and what to do next", load: one(doctor, "doctor") },
  info: {
    summary: "where everything is, and who you are",
    load: () => import("../features/watch/commands/info"),
  },
  recover: { summary: "mend a damaged log", load: one(doctor, "recover") },
  gc: { summary: "clear away what has lapsed", load: one(doctor, "gc") },
  demo: { summary: "eight agents in a scratch repository", load: () => import("../demo/commands/demo") },
  completion: { summary: "completion for your shell", load: () => import("./completion/completion") },
  "hook pre-commit": {
    summary: "what Git's pre-commit hook calls",
    isHidden: true,
    load: one(hook, "preCommit"),
  },
  "hook prepare-commit-msg": {
    summary: "what Git's prepare-commit-msg hook calls",
    isHidden: true,
    load: one(hook, "prepareCommitMessage"),
  },
  "hook pre-push": { summary: "what Git's pre-push hook calls", isHidden: true, load: one(hook, "prePush") },
  "hook pre-receive": {
    summary: "what a server's pre-receive hook calls",
    isHidden: true,
    load: one(hook, "preReceive"),
  },
  "hook post-commit": {
    summary: "what Git's post-commit hook calls",
    isHidden: true,
    load: one(hook, "postCommit"),
  },
  "hook worktree-create": {
    summary: "what a harness calls to have a worktree made",
    isHidden: true,
    load: () => import("../features/worktrees/commands/hook-worktree-create"),
  },
  "hook worktree-remove": {
    summary: "what a harness calls when a worktree is to go",
    isHidden: true,
    load: () => import("../features/worktrees/commands/hook-worktree-remove"),
  },
  complete: { summary: "what could come next", isHidden: true, load: () => import("./completion/complete") },
  "merge-issue": {
    summary: "merge an issue.json, for Git",
    isHidden: true,
    load: () => import("../features/issues/commands/merge-issue"),
  },
  version: { summary: "versions of cotenant, Node and Git", load: () => import("./version") },
};
