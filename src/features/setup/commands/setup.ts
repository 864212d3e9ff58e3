import type { Command } from "../../../cli/grammar/command";
import { installedFrom } from "../../../cli/grammar/installed";
import { HARNESS_NAMES } from "../../../identity/harness";
import { count } from "../../../kernel/printing";
import { ENFORCE_MODES, init as prepare, refuseUnknownMode, deinit as undo } from "../operations";

export const init: Command = {
  about:
    "Prepares this repository: makes .cotenant/ with a commented config.toml, .gitignore and .gitattributes, the\ncontrol plane below the Git directory, and tells Git how to merge issues in this clone. Doing it again changes nothing.",
  flags: {
    enforce: {
      value: "<mode>",
      choices: ENFORCE_MODES,
      meaning: "how strictly issue writes need a lease: off, warn or strict",
    },
    hooks: { meaning: "also have Git call cotenant at commits and pushes, as 'hooks install' does" },
    agents: {
      value: "<names>",
      choices: HARNESS_NAMES,
      meaning: "also have these harnesses ask before each write: claude,codex as in 'agent install', or all",
    },
  },
  examples: ["cotenant init", "cotenant init --enforce warn", "cotenant init --agents claude,codex --hooks"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const enforce = parsed.text("enforce") ?? null;
    refuseUnknownMode(enforce);
    const names = parsed.text("agents")?.split(",");
    const workspace = await context.workspace();
    const { made, worktree, hasRegistered, hooks, agents } = await prepare(workspace, {
      enforce,
      hooks: parsed.has("hooks"),
      agents:
        names === undefined
          ? null
          : parsed.text("agents") === "all"
            ? HARNESS_NAMES
            : names.map((name) => name.trim()),
      allowNetwork: parsed.has("allow-network-fs"),
      program: installedFrom(context),
    });
    const isNew =
      made.length > 0 || hasRegistered || hooks?.hasChanged === true || agents?.hasChanged === true;
    const text = [
      isNew ? `initialised: ${made.join(", ") || "this clone"}` : "already initialised; nothing changed",
      ...(hasRegistered ? ["  Git's configuration: issues are merged field by field"] : []),
      ...(hooks?.hasChanged ? [`  hooks in ${hooks.directory}`] : []),
      ...(agents?.shown ?? []).map((name) => `  ${name}: asks before each write`),
      ...[...(hooks?.remarks ?? []), ...(agents?.remarks ?? [])].map((remark) => `  note: ${remark}`),
      `  worktree ${worktree.worktreeId}`,
      "",
      "next:",
      ...(made.length === 0
        ? []
        : [step("git add .cotenant && git commit -m 'Use cotenant' .cotenant", "for everybody")]),
      step("cotenant issue create --title <title>", "write down work"),
      step("cotenant lock acquire <file>", "lease a file"),
      step("cotenant status", "who holds what"),
    ].join("\n");
    return {
      data: {
        created: made,
        worktree: { worktree_id: worktree.worktreeId, root: worktree.root },
        merge_driver: hasRegistered,
        hooks: hooks === null ? null : { directory: hooks.directory, changed: hooks.hasChanged },
        agents: agents === null ? null : { changed: agents.hasChanged, paths: agents.paths },
        control_directory: workspace.repository.controlDir,
      },
      text: context.quiet ? "" : text,
    };
  },
};

function step(command: string, meaning: string): string {
  return `  ${command.padEnd(59)}  ${meaning}`;
}

export const deinit: Command = {
  about:
    "Undoes what cotenant did to this clone: removes the control plane below the Git directory, with all leases and\ntheir history, the identities of its worktrees, our lines in its hooks and in settings of harnesses, and what Git was told about merging issues.\nIssues, configuration and whatever Git has in .cotenant/ stay: they are versioned with the code. Your claims are given\nback on the ledger first. Refused while somebody else holds or waits for a lease, while a claim cannot be given back, and while there\nare snapshots, unless --snapshots says that they may go. Run again, it finishes what was interrupted, or finds nothing to undo.",
  flags: {
    purge: { meaning: "also remove files that 'init' made and nobody has changed or given to Git" },
    snapshots: { meaning: "also every snapshot: what it holds exists nowhere else" },
    "dry-run": { meaning: "only show what would go and be given back; exits as without it" },
  },
  examples: ["cotenant deinit --dry-run", "cotenant deinit", "cotenant deinit --purge"],
  words: { min: 0, max: 0 },
  leavesHooks: true,
  mendsConfig: true,
  remindsOfExpiry: false,
  async run(context, parsed) {
    const isDry = parsed.has("dry-run");
    const workspace = await context.workspace();
    const { controlDir, commonDir } = workspace.repository;
    const gone = await undo(workspace, {
      purge: parsed.has("purge"),
      snapshots: parsed.has("snapshots"),
      dryRun: isDry,
    });
    const { staying, settings, hooks, agents, ownLeases, givenBack } = gone;
    const removed = [...gone.controls, ...gone.files];
    const leases = ownLeases === 0 ? "" : ` and ${count(ownLeases, "lease")} of yours`;
    const what = [
      ...removed.map((path) =>
        path === controlDir ? `${path}: a history of ${count(gone.history, "line")}${leases}` : path,
      ),
      ...hooks.map((path) => `cotenant's lines in ${path}`),
      ...agents.map((path) => `cotenant's entries in ${path}`),
      ...(gone.snapshots > 0 ? [count(gone.snapshots, "snapshot")] : []),
      ...settings.map((name) => `${name} in ${commonDir}/config`),
    ];
    const issues = givenBack.map((id) => `issue ${id}`).join(", ");
    const text = [
      ...(what.length === 0 ? ["nothing to undo"] : [isDry ? "would remove:" : "removed:"]),
      ...what.map((line) => `  ${line}`),
      ...(what.length === 0 || staying.length === 0
        ? []
        : ["kept, as it belongs to the code:", ...staying.map((line) => `  ${line}`)]),
      ...(issues === "" ? [] : [`${isDry ? "would give back" : "given back"} on the ledger: ${issues}`]),
    ].join("\n");
    return {
      data: {
        dry_run: isDry,
        removed,
        settings,
        hooks,
        agents,
        kept: [...staying, ...gone.left],
        own_leases: ownLeases,
        given_back: givenBack,
      },
      text: context.quiet ? "" : text,
    };
  },
};
