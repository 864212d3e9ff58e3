import type { Command, Context, Output, Parsed } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import { count } from "../../../cli/terminal/render";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import type { OpenLedger } from "../open";

const ACTIONS = [
  "setup-ledger",
  "ledger-only",
  "cleanup-ledger",
  "reconcile",
  "force-resync",
  "status",
] as const;
type Action = (typeof ACTIONS)[number];

export const command: Command = {
  usage: `sync [--${ACTIONS.join(" | --")}] [--yes]`,
  about:
    "Exchanges claims and issues with the other machines, over the ledger branch of the Git remote. Without a flag it is\n--ledger-only: claims are settled, and what changed here and there is merged field by field.",
  flags: {
    "setup-ledger": {
      meaning: "make the ledger, or attach to the one that is there; changes nothing of yours",
    },
    "ledger-only": { meaning: "the same as without a flag" },
    reconcile: {
      meaning: "only confirm the claims that were made offline, and say which are somebody else's",
    },
    status: { meaning: "how things stand; changes nothing" },
    "force-resync": {
      meaning: "take the remote's ledger for what it is, also if it was rewritten; needs --yes",
    },
    "cleanup-ledger": { meaning: "remove this machine's copy; the remote keeps the ledger; needs --yes" },
    yes: { meaning: "yes, do it: a backup is made first, and before a resync a snapshot" },
  },
  examples: ["cotenant sync --setup-ledger", "cotenant sync", "cotenant sync --status --json"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const asked = ACTIONS.filter((action) => parsed.has(action));
    if (asked.length > 1) throw usage(`--${asked.join(" and --")} are different things: do one at a time`);
    const action = asked[0] ?? "ledger-only";
    const workspace = await context.workspace();
    const { openLedger } = await import("../open");
    // Whoever changes something says who they are, before the remote is asked.
    if (action !== "status") await workspace.agent();
    // Also once it is turned off: what it has left on this machine can still be taken away.
    const open = await openLedger(workspace, {
      usualBranch: action === "cleanup-ledger" ? "cotenant-sync" : undefined,
    });
    const output = await perform(action, context, parsed, workspace, open);
    return context.quiet && action !== "status" ? { ...output, text: "" } : output;
  },
};

async function perform(
  action: Action,
  context: Context,
  parsed: Parsed,
  workspace: Workspace,
  open: OpenLedger,
): Promise<Output> {
  const { statusOutput } = await import("./syncing");
  switch (action) {
    case "status":
      return statusOutput(open, workspace);
    case "setup-ledger":
      return setUp(workspace, open);
    case "ledger-only":
      return synced(context, workspace, open);
    case "reconcile":
      return reconciled(context, workspace, open);
    case "force-resync":
      return resynced(parsed, workspace, open);
    case "cleanup-ledger":
      return cleanedUp(parsed, open, workspace);
  }
}

async function setUp(workspace: Workspace, open: OpenLedger): Promise<Output> {
  const { setUpLedger } = await import("../setup");
  const { placeJson } = await import("../report");
  const { agentId } = await workspace.agent();
  const { createdBranch, createdCopy, head } = await setUpLedger(open, workspace, agentId);
  const what = createdBranch
    ? `made the branch ${open.branch} on ${open.copy.transport.remote}`
    : `the branch ${open.branch} on ${open.copy.transport.remote} is there`;
  return {
    data: {
      action: "setup-ledger",
      ...placeJson(open),
      created_branch: createdBranch,
      created_copy: createdCopy,
      head,
    },
    text: `${what}\n${createdCopy ? "made" : "found"} this machine's copy: ${open.copy.place.directory}\n  next: claims are shared from now on; 'cotenant sync' exchanges issues`,
  };
}

async function synced(context: Context, workspace: Workspace, open: OpenLedger): Promise<Output> {
  const { syncLedger } = await import("../syncing");
  const { progressOn, syncedOutput } = await import("./syncing");
  const session = await workspace.session("write");
  return syncedOutput(open, await syncLedger(open, workspace, session, progressOn(context)));
}

async function reconciled(context: Context, workspace: Workspace, open: OpenLedger): Promise<Output> {
  const { reconcile } = await import("../reconcile");
  const { progressOn, reconciledLines } = await import("./syncing");
  const { placeJson, reconciledJson } = await import("../report");
  const { actor } = await workspace.session("write");
  const result = await reconcile(open.ledger, actor, { most: null, onProgress: progressOn(context) });
  const lines = reconciledLines(result);
  if (result.pending.length > 0)
    throw new CotenantError(
      "E_RETRIES_EXHAUSTED",
      lines.filter((line) => !line.startsWith("  next: ")).join("; "),
      { data: reconciledJson(result) },
    );
  return {
    data: { action: "reconcile", ...placeJson(open), ...reconciledJson(result) },
    text: lines.length === 0 ? "nothing waits to be confirmed" : lines.join("\n"),
    exit: result.conflicts.length === 0 ? 0 : 1,
  };
}

async function resynced(parsed: Parsed, workspace: Workspace, open: OpenLedger): Promise<Output> {
  const { forceResync, needsYes } = await import("../resync");
  const { placeJson } = await import("../report");
  if (!parsed.has("yes"))
    throw needsYes(
      "--force-resync",
      "it forgets what this machine has seen of the ledger, and takes the remote's as it is",
    );
  const { actor } = await workspace.session("write");
  // The next sync brings what the remote has into this worktree's issues.
  const { precaution } = await import("../../snapshots/precaution");
  const kept = await precaution(workspace, "resync");
  if (kept.failure !== null) throw kept.failure;
  const { backup, head, claims } = await forceResync(open, actor);
  return {
    data: { action: "force-resync", ...placeJson(open), backup, snapshot_id: kept.snapshotId, head, claims },
    text: [
      `took the remote's ledger as it is: ${count(claims, "claim")}`,
      backup === null ? "there was nothing to back up" : `backup: ${backup}`,
      `this worktree as it is: snapshot ${kept.snapshotId}`,
      "  next: cotenant sync",
    ].join("\n"),
  };
}

async function cleanedUp(parsed: Parsed, open: OpenLedger, workspace: Workspace): Promise<Output> {
  const { cleanUp, needsYes } = await import("../resync");
  const { placeJson } = await import("../report");
  if (!parsed.has("yes")) {
    const { offlineClaims } = (await open.state.read()).state;
    const waiting =
      offlineClaims.length === 0 ? "" : `, and ${offlineClaims.length} claims wait to be confirmed`;
    throw needsYes("--cleanup-ledger", `it removes ${open.copy.place.directory}${waiting}`);
  }
  const { backup, removed } = await cleanUp(open, workspace);
  const { source } = workspace.config.origin("sync.ledger_branch");
  const isOn = source !== "clone" && source !== "default";
  return {
    data: { action: "cleanup-ledger", ...placeJson(open), backup, removed },
    text: [
      removed ? "removed this machine's copy" : "there was no copy",
      ...(backup === null ? [] : [`backup: ${backup}`]),
      ...(isOn
        ? ["  next: take sync.ledger_branch out of the configuration, or claims go on being shared"]
        : []),
    ].join("\n"),
  };
}
