import type { Command } from "../../../cli/grammar/command";
import { installedFrom } from "../../../cli/grammar/installed";
import { interruptibly } from "../../../cli/terminal/interrupts";
import { columns, leaseJson, leaseTable, statusJson } from "../../../cli/terminal/render";
import { printable } from "../../../kernel/ids";
import type { LeaseKey } from "../../../kernel/keys";
import { count } from "../../../kernel/printing";
import { leaseSummary } from "../../../kernel/words";
import { HARNESSES } from "../../guard/harness";
import type { SitePlan } from "../../harnesses/plan";
import { HOLDER_FLAGS, holderFrom } from "../../locks/commands/flags";
import { lasting } from "../../locks/commands/output";
import { ACCESS_MODES, accessJson, accessText } from "../access";
import { type CreatedWorktree, type Removed, worktree } from "../operations";
import { type Dirt, isDirty, type Surveyed } from "../survey";

export const info: Command = {
  about: "Shows this worktree's identity and what is leased from it. Writes nothing.",
  flags: {},
  examples: ["cotenant worktree info"],
  words: { min: 0, max: 0 },
  async run(context) {
    const workspace = await context.workspace();
    const { repository } = workspace;
    const { identity, standing, branch, access, leases } = await worktree.info(workspace);
    const lines = [
      `worktree  ${identity.worktreeId}${standing === "new" ? " (not stored yet)" : ""}`,
      `root      ${repository.worktreeRoot}`,
      `branch    ${branch === null ? "(detached)" : printable(branch)}`,
      `main      ${repository.isMainWorktree ? "yes" : (repository.mainWorktreeRoot ?? "none")}`,
      `control   ${repository.controlDir}`,
      `access    ${accessText(access)}`,
      leases.length === 0 ? "leases    none" : leaseTable(context.terminal, leases, null),
    ];
    const { isMainWorktree: isMain, gitDir } = repository;
    return {
      data: {
        worktree: {
          ...worktreeJson({ ...identity, branch, isMain, gitDir, exists: true }),
          ...accessJson(access),
          standing,
          control_directory: repository.controlDir,
          created_at: identity.createdAt,
        },
        leases: leases.map(statusJson),
      },
      text: lines.join("\n"),
    };
  },
};

export const list: Command = {
  about:
    "Lists all worktrees of this repository: who works there and with how many leases, who holds the writer lock, what is\nnot committed, and how far the branch is from its upstream or from the main worktree's branch. Writes nothing.",
  flags: { quick: { meaning: "without asking Git for changes and distances" } },
  examples: ["cotenant worktree list", "cotenant worktree list --quick"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const worktrees = await worktree.list(await context.workspace(), { quick: parsed.has("quick") });
    const rows = worktrees.map((one) => [
      one.worktreeId ?? "-",
      one.branch === null ? "(detached)" : printable(one.branch, 60),
      String(one.leases.length),
      agentText(one),
      stateText(one),
      `${printable(one.root, 500)}${one.exists ? "" : one.isReplaced ? " (gone; something else is there)" : " (gone)"}${one.isMain ? " (main)" : ""}`,
    ]);
    return {
      data: { worktrees: worktrees.map(surveyedJson) },
      text: columns(context.terminal, ["WORKTREE", "BRANCH", "LEASES", "AGENT", "STATE", "ROOT"], rows),
    };
  },
};

/** A worktree as programs see it. */
function worktreeJson(
  one: Pick<Surveyed, "worktreeId" | "root" | "branch" | "isMain" | "gitDir" | "exists">,
): Record<string, unknown> {
  return {
    worktree_id: one.worktreeId,
    root: one.root,
    branch: one.branch,
    is_main: one.isMain,
    git_dir: one.gitDir,
    exists: one.exists,
  };
}

function agentText({ agents, record, writer }: Surveyed): string {
  const names = agents.map(({ agentId, liveness }) => `${agentId}${liveness === "dead" ? " (dead)" : ""}`);
  if (names.length === 0 && record !== null && record.agentId !== "") names.push(`(${record.agentId})`);
  return `${names.join(", ") || "-"}${writer === null ? "" : " [locked]"}`;
}

function stateText({ state, access, record }: Surveyed): string {
  const parts = access === "shared" ? ["shared, high risk"] : [];
  if (record?.purpose === "landing") parts.push("for checks of the merge queue");
  if (record?.purpose === "dispatch") parts.push("of a dispatch worker");
  if (record?.setup === "failed") parts.push("setup failed");
  if (state === null) return parts.join(", ") || "-";
  parts.push(isDirty(state.dirt) ? dirtText(state.dirt) : "clean");
  if (state.ahead !== null && state.ahead > 0) parts.push(`+${state.ahead}`);
  if (state.behind !== null && state.behind > 0) parts.push(`-${state.behind}`);
  return parts.join(", ");
}

function dirtText({ staged, changed, untracked, conflicts }: Dirt): string {
  return [
    ...(conflicts > 0 ? [`${conflicts} in conflict`] : []),
    ...(staged > 0 ? [`${staged} staged`] : []),
    ...(changed > 0 ? [`${changed} changed`] : []),
    ...(untracked > 0 ? [`${untracked} untracked`] : []),
  ].join(", ");
}

function surveyedJson(one: Surveyed): Record<string, unknown> {
  const { state, writer, record } = one;
  return {
    ...worktreeJson(one),
    leases: one.leases.length,
    agents: one.agents.map(({ agentId, sessionId, leases, lastBeat, liveness }) => ({
      ...{ agent_id: agentId, session_id: sessionId, leases, last_beat: lastBeat, liveness },
    })),
    agent_id: record?.agentId ?? null,
    issue_id: record?.issueId ?? null,
    setup: record?.setup ?? null,
    purpose: record?.purpose ?? null,
    ...accessJson(one.access),
    locked_by: writer?.lease.agentId ?? null,
    dirty: state === null ? null : { ...state.dirt, any: isDirty(state.dirt) },
    ahead: state?.ahead ?? null,
    behind: state?.behind ?? null,
    compared_with: state?.comparedWith ?? null,
  };
}

export const init: Command = {
  about:
    "Gives this worktree its identity now. Any writing command does it by itself. Where another worktree of the repository\nhas the same one, this one gets a new one.",
  flags: {},
  examples: ["cotenant worktree init"],
  words: { min: 0, max: 0 },
  async run(context) {
    const { identity, standing } = await worktree.init(await context.workspace());
    const { worktreeId, root, branch } = identity;
    const text = `${standing === "stored" ? "this worktree is" : "this worktree is now"} ${worktreeId}`;
    return {
      data: { worktree: { worktree_id: worktreeId, root, branch }, created: standing !== "stored" },
      text: context.quiet ? "" : text,
    };
  },
};

export const create: Command = {
  positional: "[<branch>]",
  about:
    "Makes a worktree for a branch, new or not, beside the main one. With --issue it is for that issue, which may name the\nbranch; --claim claims it from there, and a claim that you have already moves along. It gets the ignored files that worktree.copy names from the main worktree,\nand worktree.setup is run in it, if this clone trusts that. Harnesses that ask before each write here, or in the main\nworktree, ask there too. Many may be made at once.",
  flags: {
    issue: { value: "<id>", completes: "issue", meaning: "the issue that it is for" },
    claim: { meaning: "with --issue: claim it from the new worktree" },
    ttl: { value: "<secs>", meaning: "with --claim: how long the claim lasts unless renewed (default 600)" },
    "allow-blocked": { meaning: "with --claim: though it waits for another issue; needs --reason" },
    reason: { value: "<text>", meaning: "with --claim: why; shown to others and logged" },
    "secret-file": HOLDER_FLAGS["secret-file"]!,
    base: { value: "<commit>", completes: "ref", meaning: "where a new branch starts (default: HEAD)" },
    path: { value: "<directory>", completes: "directory", meaning: "where it goes, outside the repository" },
    "no-copy": { meaning: "without what worktree.copy names" },
    "no-setup": { meaning: "without running worktree.setup" },
  },
  examples: ["cotenant worktree create work/login", "cotenant worktree create --issue 7x3k --claim"],
  words: { min: 0, max: 1 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const isShared = workspace.config.values["sync.ledger_branch"] !== null;
    const takesLong = isShared && parsed.text("issue") !== undefined;
    const created = await interruptibly(context, takesLong, (signal) =>
      worktree.create(workspace, {
        ...holderFrom(parsed, workspace),
        branch: parsed.words[0],
        issue: parsed.text("issue"),
        claim: parsed.has("claim"),
        ttlSecs: parsed.whole("ttl"),
        allowBlocked: parsed.has("allow-blocked"),
        reason: parsed.text("reason"),
        base: parsed.text("base"),
        path: parsed.text("path"),
        noCopy: parsed.has("no-copy"),
        noSetup: parsed.has("no-setup"),
        program: installedFrom(context),
        signal,
        onProgress: (line) => {
          if (!context.quiet) context.note(line);
        },
      }),
    );
    const { root, setup, lease } = created;
    return {
      data: {
        worktree: {
          worktree_id: created.worktreeId,
          root,
          branch: created.branch,
          new_branch: created.newBranch !== null,
          commit: created.commit,
          agent_id: created.agentId,
          issue_id: created.issueId,
        },
        copied: created.copied.length,
        agents: created.guards.map(({ site, file }) => ({ harness: site.harness, path: file.path })),
        setup,
        lease: lease === null ? null : leaseJson(lease),
        claim_moved: created.claimMoved,
      },
      text: context.quiet ? root : createdLines(created).join("\n"),
      ...(setup === "failed" ? { exit: SETUP_FAILED } : {}),
    };
  },
};

/** Made, but not ready to be worked in. */
const SETUP_FAILED = 9;

function createdLines(created: CreatedWorktree): string[] {
  const { root, branch, newBranch, copied, guards, lease, claimMoved, agentId, setup } = created;
  return [
    `made ${printable(root, 500)} on ${newBranch === null ? "" : "new "}branch ${printable(branch)}`,
    ...(copied.length === 0 ? [] : [`  with ${count(copied.length, "ignored file")} of the main worktree`]),
    ...guardLines(guards),
    ...(lease === null
      ? []
      : [
          claimMoved
            ? `  ${lease.key}, which you had claimed, is claimed from there now (token ${lease.fencingToken})`
            : `  ${lease.key} is claimed from there by ${agentId}`,
        ]),
    ...(setup === null ? [] : [`  setup: ${setup}`]),
  ];
}

function guardLines(plans: readonly SitePlan[]): string[] {
  if (plans.length === 0) return [];
  const titles = plans.map(({ site }) => HARNESSES[site.harness].title);
  const remarks = new Set(plans.flatMap((plan) => plan.remarks));
  return [`  with the guard for ${titles.join(", ")}`, ...[...remarks].map((remark) => `  note: ${remark}`)];
}

export const remove: Command = {
  positional: "<worktree>",
  about:
    "Takes a worktree away. Whatever it has that exists nowhere else is kept as a snapshot first: changes, new files,\nwhat is staged, commits that no branch leads to; with --ignored also what Git ignores, which is gone otherwise. Its\nbranch stays. Refused while somebody else holds leases from it. Of one that was deleted by hand, Git's record goes; whatever is in\nits place by now is not touched.",
  flags: {
    "no-snapshot": { meaning: "refuse instead, when there is something to be kept" },
    ignored: { meaning: "keep what Git ignores, too" },
  },
  examples: ["cotenant worktree remove work/login"],
  words: { min: 1, max: 1 },
  completes: ["worktree"],
  async run(context, parsed) {
    const removed = await worktree.remove(await context.workspace(), {
      worktree: parsed.words[0]!,
      noSnapshot: parsed.has("no-snapshot"),
      ignored: parsed.has("ignored"),
    });
    const { worktreeId, root, branch, snapshotId, wasGone, keptRef, released, stillHeld } = removed;
    return {
      data: {
        worktree: { worktree_id: worktreeId, root, branch },
        snapshot_id: snapshotId,
        was_gone: wasGone,
        kept_ref: keptRef,
        released,
        still_held: stillHeld.map(({ lease }) => leaseSummary(lease)),
      },
      text: context.quiet ? "" : removedLines(removed).join("\n"),
    };
  },
};

function removedLines(removed: Removed): string[] {
  const { root, branch, isReplaced, snapshotId, wasGone, keptRef, issues, released, stillHeld } = removed;
  const where = printable(root, 500);
  const other = isReplaced ? ", and another repository is in its place, which stays as it is" : "";
  return [
    wasGone ? `${where} was gone already${other}: Git has forgotten it` : `removed ${where}`,
    ...(branch === null ? [] : [`  its branch ${printable(branch)} stays`]),
    ...(snapshotId === null
      ? []
      : [
          `  what was not committed is snapshot ${snapshotId}, and nowhere else: cotenant restore ${snapshotId}`,
        ]),
    ...(keptRef === null ? [] : [`  what only its record led to is kept: git log ${keptRef}`]),
    ...issues.map(({ shortId, state }) => `  issue ${shortId} is ${state} there only: no commit has that`),
    ...releasedLines(released),
    ...stillHeld.map(
      ({ lease }) => `  ${lease.agentId} still holds ${printable(lease.key)}, ${lasting(lease)}`,
    ),
  ];
}

function releasedLines(keys: readonly LeaseKey[]): string[] {
  return keys.length === 0 ? [] : [`  given back: ${keys.map((key) => printable(key)).join(", ")}`];
}

export const access: Command = {
  positional: "[exclusive|shared]",
  about:
    "Shows or sets how this worktree is written. exclusive, the default: one writer at a time, by lock. shared: no lock,\nat everybody's own risk; snapshots are best effort there, and nothing is restored in place.",
  flags: {},
  examples: [
    "cotenant worktree access",
    "cotenant worktree access shared",
    "cotenant worktree access exclusive",
  ],
  words: { min: 0, max: 1 },
  completes: [{ choices: ACCESS_MODES }],
  async run(context, parsed) {
    const [mode] = parsed.words;
    const { worktreeId, access, changed } = await worktree.access(await context.workspace(), { mode });
    return {
      data: { worktree_id: worktreeId, ...accessJson(access), changed },
      text:
        context.quiet && mode !== undefined
          ? ""
          : `${worktreeId} is ${changed ? "now " : ""}${accessText(access)}`,
    };
  },
};
