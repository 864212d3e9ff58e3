import type { Command } from "../../../cli/grammar/command";
import { statusJsonIn } from "../../../cli/terminal/render";
import {
  approveCommand,
  missingText,
  proposalJson,
  proposalText,
  standingText,
} from "../../../coordinator/proposals";
import { usageError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import {
  availableFrom,
  CLAIM_FLAGS,
  CREATE_FLAGS,
  FILTER_FLAGS,
  FREE_FILES_FLAG,
} from "../../issues/commands/flags";
import { createAndClaim } from "../../issues/commands/issues";
import { rowJson } from "../../issues/commands/output";
import { claimsText, elsewhereJson } from "../../ledger/commands/output";
import {
  ACQUIRE_FLAGS,
  CHANGE_FLAGS,
  changeFrom,
  HOLDER_FLAGS,
  holderFrom,
  NEEDS_REASON,
  REASON_FLAG,
  RENEW_FLAGS,
  releaseFrom,
  renewFrom,
} from "../../locks/commands/flags";
import {
  changeJson,
  changeOutput,
  grantOutput,
  releaseOutput,
  renewOutput,
  withTerms,
} from "../../locks/commands/output";
import { claim, titlesOf } from "../operations";
import { abandonedJson, takeOverLines } from "./abandoned-work";

const ONE_CLAIM: Pick<Command, "words" | "completes"> = { words: { min: 1, max: 1 }, completes: ["issue"] };

export const acquire: Command = {
  positional: "<issue>",
  about:
    "Claims an issue: nobody else can claim it until you release it or it runs out. Asking again for what you\nhold returns the same claim. While you hold it, it is in progress and yours wherever it is shown. Of one that somebody\nhas left it says who, when, and with which command to go on where their changes are.",
  flags: {
    ...ACQUIRE_FLAGS,
    force: { meaning: "end somebody else's live claim; needs --reason and the policy's permission" },
    reopen: {
      meaning:
        "also an issue that is done, rejected or archived, or deleted on a branch that is gone, to bring it back",
    },
    "if-ready": { meaning: "only when the issue is ready, or was left" },
    "allow-blocked": { meaning: "also while it waits for another issue; needs --reason" },
    offline: { meaning: "claim locally without asking a ledger" },
  },
  examples: ["cotenant claim acquire 7x3k", "cotenant claim acquire 7x3k --ttl 1800 --wait --timeout 60"],
  ...ONE_CLAIM,
  async run(context, parsed) {
    const workspace = await context.workspace();
    const claimed = await withTerms(context, parsed, (terms) =>
      claim.acquire(workspace, {
        ...terms,
        issue: parsed.words[0]!,
        force: parsed.has("force"),
        reopen: parsed.has("reopen"),
        ifReady: parsed.has("if-ready"),
        allowBlocked: parsed.has("allow-blocked"),
      }),
    );
    const { abandoned, shortId } = claimed;
    const output = grantOutput(context, parsed, claimed, "claim");
    const { agentId } = await workspace.agent();
    const lines = takeOverLines(abandoned, { shortId, agentId, workspace });
    return {
      ...output,
      data: { ...output.data, left: abandonedJson(abandoned) },
      text: context.quiet ? output.text : [output.text, ...lines].join("\n"),
    };
  },
};

export const renew: Command = {
  positional: "<issue|lease>",
  about: "Extends a claim you hold. Never after it has run out, and never past its total lifetime.",
  flags: { ...HOLDER_FLAGS, ...RENEW_FLAGS },
  examples: ["cotenant claim renew 7x3k", "cotenant claim renew 7x3k --ttl 1200"],
  ...ONE_CLAIM,
  async run(context, parsed) {
    const workspace = await context.workspace();
    const request = { ...renewFrom(parsed, workspace), claim: parsed.words[0]! };
    return renewOutput(context, await claim.renew(workspace, request));
  },
};

export const heartbeat: Command = {
  positional: "<issue|lease>",
  about: "Shows that work on a claim goes on. It moves the claim's last beat and nothing else.",
  flags: HOLDER_FLAGS,
  examples: ["cotenant claim heartbeat 7x3k"],
  ...ONE_CLAIM,
  async run(context, parsed) {
    const workspace = await context.workspace();
    const request = { ...holderFrom(parsed, workspace), claim: parsed.words[0]! };
    const change = await claim.heartbeat(workspace, request);
    return changeOutput(
      context,
      change,
      ({ lastBeat }) => `beat at ${new Date(lastBeat.wallMs).toISOString()}`,
    );
  },
};

export const release: Command = {
  positional: "<issue|lease>",
  about:
    "Gives a claim back. The issue is free at once: if you had written it in progress, it is ready again, and if you had\nassigned it to yourself, it is nobody's.",
  flags: { ...HOLDER_FLAGS, ...REASON_FLAG },
  examples: ["cotenant claim release 7x3k"],
  ...ONE_CLAIM,
  async run(context, parsed) {
    const workspace = await context.workspace();
    const request = { ...releaseFrom(parsed, workspace), claim: parsed.words[0]! };
    return releaseOutput(context, await claim.release(workspace, request));
  },
};

export const transfer: Command = {
  positional: "<issue|lease|key>",
  about:
    "Hands a claim over to another agent, with a new token and without a moment in which somebody else could\ntake it. The new holder's next command from that worktree picks it up. Somebody else's claim can be handed over by\nthose whom policy.evict allows (people and admins by default); its holder is told who did it, and why.",
  flags: {
    ...HOLDER_FLAGS,
    "to-agent": { value: "<type:name>", isRequired: true, completes: "agent", meaning: "the new holder" },
    "to-worktree": {
      value: "<worktree>",
      completes: "worktree",
      meaning: "the worktree it will work in (default: this one)",
    },
    ...NEEDS_REASON,
  },
  examples: [
    'cotenant claim transfer 7x3k --to-agent agent:reviewer --reason "ready for review"',
    'cotenant claim transfer 7x3k --to-agent agent:bob --reason "ada is on leave" --agent-id human:me',
  ],
  words: { min: 1, max: 1, what: "an issue, a lease or a key such as file:a.txt" },
  completes: ["issue"],
  async run(context, parsed) {
    const toAgent = parsed.text("to-agent");
    if (toAgent === undefined)
      throw usageError("a transfer needs somebody to take it over", "add --to-agent <type:name>");
    const workspace = await context.workspace();
    const change = await claim.transfer(workspace, {
      ...holderFrom(parsed, workspace),
      claim: parsed.words[0]!,
      toAgent,
      toWorktree: parsed.text("to-worktree"),
      reason: parsed.text("reason"),
    });
    return changeOutput(
      context,
      change,
      ({ key, agentId, worktreeId, fencingToken }) =>
        `${printable(key)} now belongs to ${agentId} in ${worktreeId} (token ${fencingToken})`,
    );
  },
};

export const forceEvict: Command = {
  positional: "<issue|lease|key>",
  about:
    "Ends somebody's claim, or a lock by its key (file:src/app.ts). A live one only by those whom policy.evict allows (people and admins by default).\nThe old holder's next write is refused: its token is stale. Where policy.approvers asks for the approval of others, it\nonly proposes to end a live one (E_APPROVAL_NEEDED, with the proposal's id), and 'claim approve' ends it.",
  flags: {
    ...CHANGE_FLAGS,
    reason: { value: "<text>", isRequired: true, meaning: "why; logged with your name" },
  },
  examples: [
    'cotenant claim force-evict 7x3k --reason "its machine is gone" --agent-id human:ada',
    'cotenant claim force-evict file:src/app.ts --reason "its agent hangs" --agent-id human:ada',
  ],
  isForPeople: true,
  words: { min: 1, max: 1, what: "an issue, a lease or a key such as file:a.txt" },
  completes: ["issue"],
  async run(context, parsed) {
    const evicted = await claim.forceEvict(await context.workspace(), {
      ...changeFrom(parsed),
      claim: parsed.words[0]!,
      reason: parsed.text("reason"),
    });
    const { leases, elsewhere, ledger } = evicted;
    const text = [
      ...leases.map((l) => `ended the lease of ${l.agentId} on ${printable(l.key)}`),
      ...elsewhere.map(
        ({ issueId, agentId, host }) =>
          `ended the claim of ${agentId} on ${printable(host, 60)} to issue:${issueId}; it hears so when it renews, syncs or publishes`,
      ),
    ];
    return {
      data: {
        ...changeJson(evicted),
        ...(ledger === undefined
          ? {}
          : {
              ended_elsewhere: elsewhere.map(({ issueId, leaseId, agentId, host }) => ({
                issue_id: issueId,
                lease_id: leaseId,
                agent_id: agentId,
                host,
              })),
            }),
      },
      text: context.quiet ? "" : text.join("\n"),
    };
  },
};

export const approve: Command = {
  positional: "<proposal|issue|lease>",
  about:
    "Agrees to end somebody's live lease, as 'claim force-evict' has proposed it where policy.approvers asks for the approval\nof others. Never by whoever proposed it, and only by those whom policy.evict allows. The last approval that is needed ends\nthe lease, for the reason of the proposal.",
  flags: {},
  examples: ["cotenant claim approve 7x3k --agent-id human:bob"],
  isForPeople: true,
  words: { min: 1, max: 1, what: "a proposal, an issue or a lease" },
  completes: ["issue"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const approved = await claim.approve(workspace, { proposal: parsed.words[0]! });
    const { proposal, missing, change, wasAgreed } = approved;
    const { agentId, key } = proposal.subject;
    const text =
      change === null
        ? `${wasAgreed ? "you have agreed already" : "agreed"}; nothing has ended yet: ${missingText(missing)}`
        : `agreed, and ended the lease of ${agentId} on ${printable(key)}`;
    const { replayed: _, ...ended } = changeJson(change ?? { leases: [], replayed: false, changed: false });
    return {
      data: {
        proposal: proposalJson(proposal, workspace.coordinator.policy),
        evicted: change !== null,
        ...ended,
      },
      text: context.quiet ? "" : text,
    };
  },
};

export const proposals: Command = {
  about:
    "Lists evictions that wait for the approval of others (policy.approvers), each with the command that agrees to it. One that is\nolder than an hour, or whose lease has ended or changed hands, counts for nothing and is not listed.",
  flags: {},
  examples: ["cotenant claim proposals", "cotenant claim proposals --json"],
  words: { min: 0, max: 0 },
  async run(context) {
    const workspace = await context.workspace();
    const { policy } = workspace.coordinator;
    const open = await claim.proposals(workspace);
    const lines = open.flatMap((proposal) => [
      `${proposalText(proposal)} (${standingText(proposal, policy)})`,
      `  next: ${approveCommand(proposal)}`,
    ]);
    return {
      data: { proposals: open.map((proposal) => proposalJson(proposal, policy)) },
      text: lines.join("\n") || "no evictions are proposed",
    };
  },
};

export const status: Command = {
  about: "Shows all claims, yours first (marked *).",
  flags: {
    mine: { meaning: "only those of this agent, session and worktree" },
    issue: { value: "<id>", completes: "issue", meaning: "only this issue's" },
    agent: { value: "<type:name>", completes: "agent", meaning: "only this agent's" },
  },
  examples: ["cotenant claim status", "cotenant claim status --mine --json"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const isOwnOnly = parsed.has("mine");
    const { leases, view, me } = await claim.status(workspace, {
      mine: isOwnOnly,
      agent: parsed.text("agent"),
      issue: parsed.text("issue"),
    });
    return {
      data: { leases: leases.map(statusJsonIn(view)), ...elsewhereJson(view) },
      text: context.json
        ? ""
        : claimsText(context.terminal, leases, me, view, {
            titles: await titlesOf(workspace, leases),
            isOwnOnly,
          }),
    };
  },
};

export const list: Command = {
  about: "Lists active claims, with the fields of the flat index that 'gc' writes to claims.index.json.",
  flags: {},
  examples: ["cotenant claim list --json"],
  words: { min: 0, max: 0 },
  async run(context) {
    const workspace = await context.workspace();
    const { leases, view, me, generatedAtMs, sequence } = await claim.list(workspace);
    const active = leases.map(statusJsonIn(view));
    return {
      data: {
        schema_version: 1,
        generated_at: new Date(generatedAtMs).toISOString(),
        sequence,
        stale_threshold_secs: workspace.config.policy.staleThresholdSecs,
        // Under both names: the seed's, and the one every command of ours has.
        active,
        leases: active,
        ...elsewhereJson(view),
      },
      text: claimsText(context.terminal, leases, me, view),
    };
  },
};

export const create: Command = {
  about:
    "Writes an issue down and claims it: 'issue create' and 'claim acquire' in one. Where the claim is refused there is no\nissue; with --request-id it can be repeated, and makes one.",
  flags: { ...CREATE_FLAGS, ...CLAIM_FLAGS, title: { ...CREATE_FLAGS["title"]!, isRequired: true } },
  examples: ['cotenant claim create --title "Fix the login" --ttl 600'],
  words: { min: 0, max: 1 },
  run: createAndClaim,
};

const { limit: _, ...NARROWING } = FILTER_FLAGS;

export const next: Command = {
  about:
    "Claims the first of what 'query available' lists. Many may do so at once: each gets another one. Exits with 4\nwhen there is none.",
  flags: {
    ...ACQUIRE_FLAGS,
    ...NARROWING,
    ...FREE_FILES_FLAG,
    wait: { meaning: "wait until something is available" },
  },
  examples: ["cotenant claim next", "cotenant claim next --type bug --ttl 1800  # exits 4"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const onWait = () => void (context.quiet || context.note("nothing is available yet: waiting"));
    const claimed = await withTerms(context, parsed, ({ wait, ...terms }) =>
      claim.next(workspace, {
        ...terms,
        ...availableFrom(parsed),
        wait: wait === undefined ? undefined : { ...wait, onWait },
      }),
    );
    const { issue, abandoned } = claimed;
    const { shortId } = issue;
    const output = grantOutput(context, parsed, claimed, "claim");
    const { agentId } = await workspace.agent();
    const lines = [
      `${shortId}: ${printable(issue.title, 300)}`,
      output.text,
      ...takeOverLines(abandoned, { shortId, agentId, workspace }),
    ];
    return {
      data: { issue: rowJson(issue, agentId, abandoned), ...output.data },
      text: context.quiet ? [shortId, output.text].filter(Boolean).join("\n") : lines.join("\n"),
    };
  },
};
