import type { Command, Context, Parsed } from "../../../cli/grammar/command";
import { installedFrom } from "../../../cli/grammar/installed";
import { interruptibly } from "../../../cli/terminal/interrupts";
import { leaseJson } from "../../../cli/terminal/render";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { printable, type Ulid } from "../../../kernel/ids";
import type { Lease } from "../../../kernel/lease";
import { count, shellWord } from "../../../kernel/printing";
import { nodeCommands } from "../../../platform/node/commands";
import { nodeTrees } from "../../../platform/node/trees";
import { callingProcess } from "../../guard/calling-process";
import { HARNESSES } from "../../guard/harness";
import { carryAgents } from "../../harnesses/carried-settings";
import type { SitePlan } from "../../harnesses/plan";
import { keyOfIssue } from "../../issues/claim-refs";
import { confirmClaim, refuseUnclaimable } from "../../issues/claimable";
import { issuesIn } from "../../issues/desk";
import { meant } from "../../issues/meant";
import { shortId } from "../../issues/short-id";
import { tokenSeen } from "../../issues/stamps";
import { uncommittedIssues } from "../../issues/uncommitted";
import { tellSay } from "../../ledger/commands/ledger";
import { readOptions, takesLong, tellOfTwin } from "../../locks/commands/acquiring";
import { givenReason, HOLDER_FLAGS, proof } from "../../locks/commands/holding";
import { type Created, createWorktree, undoCreation } from "../creating";
import { meantWorktree } from "../meant";
import { branchForIssue, checkBranch, normal } from "../naming";
import { settleRemovals } from "../removing";
import { runSetup } from "../setup";
import { claimFor, ownClaim } from "../taking-along";
import { workspaceAt } from "./worktree-word";

export const command: Command = {
  usage: "worktree create [<branch>] [--issue <id> [--claim]] [--base <commit>] [--path <directory>]",
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
    const issue = await issueWanted(workspace, parsed);
    const branch = parsed.words[0] ?? issue?.branch;
    if (branch === undefined)
      throw new CotenantError("E_USAGE", "a worktree is made for a branch or for an issue", {
        hint: "cotenant worktree create work/login, or --issue <id>",
      });
    checkBranch(branch);
    if (parsed.text("ttl") !== undefined && !parsed.has("claim"))
      throw new CotenantError("E_USAGE", "--ttl is about the claim, but --claim is missing", {
        hint: "add --claim",
      });
    const options = await readOptions(parsed, workspace, { keys: [], noun: "claim" });
    const { secret = null } = await proof(workspace, parsed);
    if (issue?.own != null) (await workspace.session("read")).refuseWrong(secret, [issue.own]);
    const yard = { workspace, session: await workspace.session("write"), trees: nodeTrees() };
    await settleRemovals(yard);
    const path = parsed.text("path");
    const created = await createWorktree(yard, {
      branch,
      base: parsed.text("base") ?? null,
      place:
        path === undefined
          ? null
          : normal(path.startsWith("/") ? path : `${workspace.surroundings.cwd}/${path}`),
      issueId: issue?.id ?? null,
      copies: !parsed.has("no-copy"),
    });
    const entry = await meantWorktree(workspace, created.root);
    const there = await workspaceAt(context, parsed, entry, "worktree create");
    const session = await there.session("write");
    const holder = await callingProcess(workspace.surroundings.platform.processes);
    const claim = async ({ id, own, aboveToken }: Wanted, signal: AbortSignal | undefined) => {
      try {
        const interrupted = signal === undefined ? {} : { interrupted: signal };
        const wish = { ...options, ...interrupted, secret, holder, aboveToken };
        const granted = await claimFor(session, keyOfIssue(id), own, wish);
        await confirmClaim(session, granted, () => issueWanted(workspace, parsed));
        return granted;
      } catch (error) {
        // Nothing has happened in it: it goes as it came.
        await undoCreation(yard, created);
        throw error;
      }
    };
    const grant =
      issue !== null && (parsed.has("claim") || issue.own !== null)
        ? await interruptibly(context, takesLong(workspace, parsed), (signal) => claim(issue, signal))
        : null;
    if (grant !== null) tellSay(workspace, grant.ledger);
    if (issue?.own != null) await tellOfTwin(workspace, holder, [issue.own]);
    const hasMoved = grant !== null && issue?.own != null;
    if (issue !== null) await tellUncommitted(workspace, issue.id);
    const carried = await carryAgents(workspace, there, installedFrom(context));
    workspace.warnings.push(...carried.failures);
    const setup = parsed.has("no-setup") ? null : await setUp(context, yard, created);
    const { copied } = created;
    const lines = [
      `made ${printable(created.root, 500)} on ${created.newBranch === null ? "" : "new "}branch ${printable(created.branch)}`,
      ...(copied.length === 0 ? [] : [`  with ${count(copied.length, "ignored file")} of the main worktree`]),
      ...guardLines(carried.plans),
      ...(grant === null
        ? []
        : [
            hasMoved
              ? `  ${grant.leases[0]!.key}, which you had claimed, is claimed from there now (token ${grant.leases[0]!.fencingToken})`
              : `  ${grant.leases[0]!.key} is claimed from there by ${session.actor.agentId}`,
          ]),
      ...(setup === null ? [] : [`  setup: ${setup}`]),
    ];
    return {
      data: {
        worktree: {
          worktree_id: created.worktreeId,
          root: created.root,
          branch: created.branch,
          new_branch: created.newBranch !== null,
          commit: created.commit,
          agent_id: session.actor.agentId,
          issue_id: issue?.id ?? null,
        },
        copied: copied.length,
        agents: carried.plans.map(({ site, file }) => ({ harness: site.harness, path: file.path })),
        setup,
        lease: grant === null ? null : leaseJson(grant.leases[0]!),
        claim_moved: hasMoved,
      },
      text: context.quiet ? created.root : lines.join("\n"),
      ...(setup === "failed" ? { exit: SETUP_FAILED } : {}),
    };
  },
};

function guardLines(plans: readonly SitePlan[]): string[] {
  if (plans.length === 0) return [];
  const titles = plans.map(({ site }) => HARNESSES[site.harness].title);
  const remarks = new Set(plans.flatMap((plan) => plan.remarks));
  return [`  with the guard for ${titles.join(", ")}`, ...[...remarks].map((remark) => `  note: ${remark}`)];
}

/** Made, but not ready to be worked in. */
const SETUP_FAILED = 9;

interface Wanted {
  readonly id: Ulid;
  readonly branch: string;
  readonly own: Lease | null;
  readonly aboveToken: number;
}

async function issueWanted(workspace: Workspace, parsed: Parsed): Promise<Wanted | null> {
  const typed = parsed.text("issue");
  if (typed === undefined) {
    if (!parsed.has("claim")) return null;
    throw new CotenantError("E_USAGE", "--claim claims an issue, but --issue is missing", {
      hint: "add --issue <id>",
    });
  }
  const reader = await issuesIn(workspace);
  const found = await meant(reader, typed);
  const { id, issue } = found;
  if (parsed.has("allow-blocked")) givenReason(parsed, "claiming an issue that waits for another");
  // Without a claim it may be prepared for later.
  const allowsBlocked = parsed.has("allow-blocked") || !parsed.has("claim");
  await refuseUnclaimable(reader, found, { allowsBlocked });
  return {
    id,
    own: await claimOf(workspace, parsed, id),
    aboveToken: tokenSeen([issue]),
    branch: branchForIssue(shortId(id, await reader.ids()), issue.title),
  };
}

/** Git refuses to merge a branch over files that are not committed where it is merged: said while it costs one command. */
async function tellUncommitted(workspace: Workspace, id: Ulid): Promise<void> {
  const { repository, surroundings } = workspace;
  const { worktreeRoot, mainWorktreeRoot } = repository;
  for (const root of new Set([worktreeRoot, mainWorktreeRoot ?? worktreeRoot])) {
    if (!(await uncommittedIssues(surroundings.git, root)).includes(id)) continue;
    const where = shellWord(root);
    workspace.warnings.push(
      `issue ${id} is not committed in ${printable(root, 500)}; before the branch is merged there: git -C ${where} add .cotenant && git -C ${where} commit -m 'Add issue ${id}'`,
    );
  }
}

/** Before anything is made: the claim itself decides, but mostly this spares the work. */
async function claimOf(workspace: Workspace, parsed: Parsed, id: Ulid): Promise<Lease | null> {
  const { actor } = await workspace.session("read");
  try {
    return await ownClaim(workspace.coordinator, actor, keyOfIssue(id));
  } catch (error) {
    // Whose issue it is matters only to whoever wants to claim it.
    if (!parsed.has("claim") && error instanceof CotenantError && error.code === "E_LOCK_CONFLICT")
      return null;
    throw error;
  }
}

async function setUp(
  context: Context,
  yard: Parameters<typeof runSetup>[0],
  created: Created,
): Promise<"done" | "failed" | null> {
  const line = yard.workspace.config.values["worktree.setup"];
  if (line === null) return null;
  if (!context.quiet) context.note(`running ${printable(line, 300)} in ${printable(created.root, 500)}`);
  const end = await runSetup(yard, nodeCommands(), created, line);
  if (end.exitStatus === 0 && !end.timedOut) return "done";
  const how = end.timedOut ? "did not end in time" : `ended with ${end.exitStatus ?? end.signal}`;
  yard.workspace.warnings.push(
    `worktree.setup ${how}: ${printable(end.output.trim().split("\n").at(-1) ?? "", 300)}; run it again in ${printable(created.root, 500)}`,
  );
  return "failed";
}
