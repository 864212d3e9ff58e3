import type { Command, Context, Output, Parsed } from "../../../cli/grammar/command";
import { statusJsonIn, timeLeft, untabbed } from "../../../cli/terminal/render";
import { usageError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { abandonedJson } from "../../claims/commands/abandoned-work";
import { createClaimed } from "../../claims/operations/create";
import { CHANGE_FLAGS, changeFrom } from "../../locks/commands/flags";
import { grantOutput, withTerms } from "../../locks/commands/output";
import { abandonedText } from "../../snapshots/abandoned-work";
import { claimantOf } from "../effective";
import { ISSUE_STATES } from "../model";
import type { CreatedIssue } from "../operations/creation";
import { issue, type ShownIssue } from "../operations/issue";
import { parseState } from "../states";
import { openDesk } from "./desk";
import {
  CLAIM_FLAGS,
  CREATE_FLAGS,
  createFrom,
  FIELD_FLAGS,
  fieldsFrom,
  filterFrom,
  QUERY_FLAGS,
  reasonFlag,
  standardInput,
} from "./flags";
import { contentOf, MOST_BYTES } from "./input";
import { changeCommand, issueJson, listText } from "./output";

export const create: Command = {
  usage:
    "issue create --title <text> [--label <ns:value>]… [--depends-on <issue>]… [--claim] | --from <file>",
  about:
    "Writes down work to be done, as plain files in .cotenant/issues/. Needs no lease. With --claim it is yours\nat once. --from makes many of them from a file of JSON: an array, or one object on each line, - for\nstandard input; 'ref' names one of them for the others' 'dependencies'.",
  flags: {
    ...CREATE_FLAGS,
    ...CLAIM_FLAGS,
    claim: { meaning: "claim it in the same step" },
    from: { value: "<file>", completes: "path", meaning: "make all the issues in this file" },
  },
  examples: [
    'cotenant issue create --title "Log in with a passkey" --priority high --label type:story',
    'cotenant issue create --title "Fix the login" --claim --ttl 1800',
  ],
  words: { min: 0, max: 1 },
  async run(context, parsed) {
    const from = parsed.text("from");
    if (from !== undefined) return createMany(context, parsed, from);
    if (parsed.has("claim")) return createAndClaim(context, parsed);
    const desk = await openDesk(context);
    const created = await issue.create(desk, await createFrom(parsed));
    const { shortId } = created;
    // Outside of Git there are no claims.
    const next = desk.workspace === null ? "" : `\n  claim it: cotenant claim acquire ${shortId}`;
    return { data: createdData(created), text: context.quiet ? shortId : createdText(created) + next };
  },
};

async function createMany(context: Context, parsed: Parsed, from: string): Promise<Output> {
  for (const flag of ["title", "description", "claim", "label", "depends-on", "gate", "file", "context"])
    if (parsed.has(flag) || parsed.text(flag) !== undefined || parsed.texts(flag).length > 0)
      throw usageError(`--${flag} and --from do not go together`, "say it in the file, for each issue");
  const desk = await openDesk(context);
  const text = from === "-" ? await standardInput(MOST_BYTES) : await contentOf(context.surroundings(), from);
  const created = await issue.createMany(desk, { text, source: from === "-" ? "standard input" : from });
  const more = created.length > 20 ? [`… ${count(created.length, "issue")} in all`] : [];
  const lines = context.quiet
    ? created.map(({ shortId }) => shortId)
    : [...created.slice(0, 20).map(createdText), ...more];
  return {
    data: { issues: created.map((one) => issueJson(one, one.shortId)) },
    text: lines.join("\n"),
  };
}

/** `issue create --claim`, and `claim create`. */
export async function createAndClaim(context: Context, parsed: Parsed): Promise<Output> {
  const workspace = await context.workspace();
  const request = await createFrom(parsed);
  const { created, granted } = await withTerms(context, parsed, (terms) =>
    createClaimed(workspace, { ...request, ...terms, allowBlocked: parsed.has("allow-blocked") }),
  );
  const claimed = grantOutput(context, parsed, granted, "claim");
  const lines = [context.quiet ? created.shortId : createdText(created), claimed.text];
  return { data: { ...createdData(created), ...claimed.data }, text: lines.filter(Boolean).join("\n") };
}

function createdData(created: CreatedIssue): Record<string, unknown> {
  const { shortId, path, replayed } = created;
  return { issue: issueJson(created, shortId), path, replayed };
}

function createdText({ shortId, issue: { title } }: CreatedIssue): string {
  return `created ${shortId}: ${printable(title)}`;
}

export const show: Command = {
  positional: "<id>",
  about:
    "Shows one issue from whichever copy is newest: that of whoever has claimed it, this worktree's, the main\none's, or HEAD's.",
  flags: {},
  examples: ["cotenant issue show 7x3k"],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const desk = await openDesk(context);
    const shown = await issue.show(desk, { issue: parsed.words[0]! });
    const { found, shortId, comments, claim, view, abandoned } = shown;
    const { ahead } = found;
    return {
      data: {
        issue: issueJson(found, shortId),
        layer: found.copy.layer,
        diverged: found.diverged.map(({ layer, root }) => ({ layer, root })),
        ahead:
          ahead === null
            ? null
            : {
                version: ahead.version,
                state: ahead.state,
                agent_id: ahead.agentId,
                worktree_id: ahead.worktreeId,
              },
        comments: comments.map(({ id, at, by, text }) => ({ id, at, by, text })),
        claim: claim === null ? null : statusJsonIn(view)(claim),
        left: abandonedJson(abandoned),
      },
      text: shownText(shown, desk.reader.here.root),
    };
  },
};

function shownText(shown: ShownIssue, here: string): string {
  const { found, shortId, comments, needs, abandoned } = shown;
  const { issue, labels, copy, state } = found;
  const listed = (name: string, values: readonly string[]) =>
    values.length === 0
      ? []
      : [`  ${name.padEnd(9)} ${values.map((value) => printable(value, 120)).join(", ")}`];
  return [
    `${shortId}  ${printable(issue.title, 300)}`,
    `  id        ${issue.id}`,
    `  state     ${state}, priority ${issue.priority}`,
    ...listed("assignee", issue.assignee === null ? [] : [issue.assignee]),
    ...listed("labels", labels),
    ...needs.map((need, i) => `  ${(i === 0 ? "needs" : "").padEnd(9)} ${needText(need)}`),
    ...listed("gates", issue.gates),
    ...listed("files", issue.files),
    ...listed(
      "documents",
      issue.documents.map(({ path }) => path),
    ),
    ...listed(
      "context",
      Object.entries(issue.context).map(([name, text]) => `${name}=${text}`),
    ),
    ...listed("because", issue.resolution === null ? [] : [issue.resolution]),
    `  claimed   ${claimText(shown)}`,
    ...(abandoned === null ? [] : [`  it was    ${abandonedText(abandoned, here)}`]),
    `  read from ${copy.layer}, version ${issue.stamp.version}`,
    ...(issue.description === "" ? [] : ["", ...indented(issue.description)]),
    ...comments.flatMap(({ at, by, text }) => [
      "",
      `  ${printable(by, 80)}, ${printable(at, 40)}:`,
      ...indented(text),
    ]),
  ].join("\n");
}

function needText({ id, shortId, title }: ShownIssue["needs"][number]): string {
  return title === null ? `${printable(id, 40)}, which is not here` : `${shortId}  ${printable(title, 120)}`;
}

/** Who has it: here, or as far as the ledger knows on another machine. */
function claimText({ claim, view, found }: ShownIssue): string {
  if (claim !== null) {
    const provisional = view?.standing(claim.lease) === "provisional" ? ", provisional" : "";
    return `by ${claim.lease.agentId} (${claim.lease.worktreeId}), ${timeLeft(claim)}${provisional}`;
  }
  const other = view?.others.get(found.id);
  return other === undefined ? "by nobody" : `by ${other.agentId} on ${printable(other.host, 60)}`;
}

function indented(text: string): string[] {
  return text.split("\n").map((line) => `  ${untabbed(line, 2_000)}`);
}

export const list: Command = {
  about:
    "Lists issues of all worktrees and of HEAD, each from its newest copy: the most urgent first, then by type, then\nthe oldest. With --json, whole.",
  flags: QUERY_FLAGS,
  examples: ["cotenant issue list", "cotenant issue list --state ready --json"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const desk = await openDesk(context);
    const answer = await issue.list(desk, filterFrom(parsed));
    if (!context.json) return { data: {}, text: listText(context, desk, answer, "no issues") };
    const { board, issues, broken, workers, abandoned } = answer;
    const items: Record<string, unknown>[] = [];
    for await (const { id, shortId, ...whole } of board.issues(issues.map(({ row }) => row)))
      items.push({
        ...issueJson(whole, shortId),
        claimed_by: claimantOf(workers, id),
        left: abandonedJson(abandoned.get(id)),
      });
    return { data: { issues: items, broken }, text: "" };
  },
};

export const update = changeCommand({
  positional: "<id>",
  about:
    "Changes an issue that you have claimed. An issue that is done and has gates to pass becomes gated, and done\nwhen the last one is passed. 'cotenant close <id>' is short for --state done --release,\n'cotenant in-progress <id>' for --state in_progress.",
  flags: {
    state: { value: "<state>", choices: ISSUE_STATES, meaning: `one of ${ISSUE_STATES.join(", ")}` },
    ...FIELD_FLAGS,
    label: { value: "<ns:value>", many: true, meaning: "add a label" },
    "remove-label": { value: "<ns:value>", many: true, meaning: "take a label away" },
    "remove-file": { value: "<path>", many: true, meaning: "a file that it does not change after all" },
    ...reasonFlag("with --state done: how it was done, kept as its resolution"),
    release: { meaning: "give the claim back as well" },
    "allow-blocked": { meaning: "with --state done: though it waits for another issue; needs --reason" },
    "remove-context": { value: "<name>", many: true, meaning: "forget what was known under this name" },
  },
  examples: ["cotenant issue update 7x3k --state in_progress", "cotenant issue update 7x3k --state done"],
  change: async (desk, request, parsed) =>
    issue.update(desk, {
      ...request,
      ...(await fieldsFrom(parsed)),
      state: parsed.text("state"),
      labels: parsed.texts("label"),
      removeLabels: parsed.texts("remove-label"),
      removeFiles: parsed.texts("remove-file"),
      removeContext: parsed.texts("remove-context"),
      reason: parsed.text("reason"),
      allowBlocked: parsed.has("allow-blocked"),
      release: parsed.has("release"),
    }),
  done({ found: { state }, written }, parsed) {
    const given = parsed.text("state");
    const wanted = given === undefined ? null : parseState(given);
    if (wanted === "done" && written === "gated") return "gated: it is done once its gates are passed";
    return state === written || wanted === null
      ? state
      : `${written} once its claim is given back, ${state} until then`;
  },
  same: () => "nothing to change",
});

const remove = changeCommand({
  positional: "<id>",
  about:
    "Deletes an issue that you have claimed. Only from the main worktree, where everybody sees it. A tombstone\nstays, so that no old worktree brings it back. Your claim is given back with it.",
  flags: reasonFlag("why; kept in the tombstone"),
  examples: ['cotenant issue delete 7x3k --reason "a duplicate of 9k2m"'],
  change: (desk, request, parsed) => issue.delete(desk, { ...request, reason: parsed.text("reason") }),
  done: () => "deleted",
  same: () => "it was deleted already",
});

export { remove as delete };

export const assign = changeCommand({
  positional: "<id> <type:name>",
  about: "Says who should do an issue that you have claimed.",
  examples: ["cotenant issue assign 7x3k agent:claude-2"],
  words: { min: 2, max: 2 },
  completes: ["issue", "agent"],
  change: (desk, request, { words }) => issue.assign(desk, { ...request, assignee: words[1]! }),
  done: (_, { words }) => `assigned to ${words[1]}`,
  same: ({ words }) => `it is assigned to ${words[1]} already`,
});

export const unassign = changeCommand({
  positional: "<id>",
  about: "Takes the assignee off an issue that you have claimed.",
  examples: ["cotenant issue unassign 7x3k"],
  change: (desk, request) => issue.unassign(desk, request),
  done: () => "assigned to nobody",
  same: () => "it is assigned to nobody already",
});

export const reject = changeCommand({
  positional: "<id>",
  about: "Closes an issue that you have claimed without doing it. Its gates do not matter then.",
  flags: { reason: { ...reasonFlag("why it is not done")["reason"]!, isRequired: true } },
  examples: ['cotenant issue reject 7x3k --reason "superseded by the new login"'],
  change: (desk, request, parsed) => issue.reject(desk, { ...request, reason: parsed.text("reason") }),
  done: () => "rejected",
  same: () => "it is rejected already",
});

export const reopen = changeCommand({
  positional: "<id>",
  about:
    "Brings back an issue that is done, rejected or archived, as ready. It needs a claim like every change:\n'claim acquire --reopen' takes one on an issue that has ended. Its gates have to be passed again.\nOne that was deleted comes back when no branch and no worktree has its deletion any more, and never once a ledger has it.",
  flags: reasonFlag("why it is open again"),
  examples: ['cotenant issue reopen 7x3k --reason "it broke again"'],
  change: (desk, request, parsed) => issue.reopen(desk, { ...request, reason: parsed.text("reason") }),
  done: ({ found }) => `${found.issue.state} again`,
  same: () => "it is open already",
});

export const comment: Command = {
  positional: "<id>",
  about: "Adds a comment. Comments only ever come, so nobody needs a claim for one.",
  flags: {
    ...CHANGE_FLAGS,
    text: {
      value: "<text>",
      isRequired: true,
      meaning: "what you have to say; - reads it from standard input",
    },
  },
  examples: ['cotenant issue comment 7x3k --text "the tests are in login.test.ts"'],
  words: { min: 1, max: 2 },
  completes: ["issue"],
  async run(context, parsed) {
    const given = parsed.text("text") ?? parsed.words[1] ?? "";
    const text = given === "-" ? await standardInput(1 << 20) : given;
    const request = { ...changeFrom(parsed), issue: parsed.words[0]!, text };
    const { id, shortId, comment, replayed } = await issue.comment(await openDesk(context), request);
    return {
      data: { issue_id: id, comment, replayed },
      text: context.quiet ? "" : `${shortId}: commented`,
    };
  },
};
