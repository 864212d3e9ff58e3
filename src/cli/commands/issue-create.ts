import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { labelChange } from "../../issues/labels";
import { newIssue } from "../../issues/model";
import { shortId } from "../../issues/short-id";
import { parseState } from "../../issues/states";
import { type Draft, IssueWriter } from "../../issues/writer";
import { makeUlid, printable, type Ulid } from "../../kernel/ids";
import { nodePlatform } from "../../platform/node/node";
import { ACQUIRE_FLAGS, acquire, readOptions } from "../acquiring";
import { callerOrNull } from "../caller";
import type { Command, Context, Flag, Output, Parsed } from "../command";
import { knownGates } from "../gates";
import { requestId } from "../holding";
import {
  assigneeOf,
  contextOf,
  FIELD_FLAGS,
  filesOf,
  givenDescription,
  labelsOf,
  priorityOf,
  titleOf,
} from "../issue-fields";
import { type Desk, keyOfIssue, meantId, newIssueJson, openDesk } from "../issues";

// A new issue is free: there is nothing to wait for.
const { wait: _wait, timeout: _timeout, ...CLAIM_FLAGS } = ACQUIRE_FLAGS;

export const CREATE_FLAGS: Readonly<Record<string, Flag>> = {
  ...FIELD_FLAGS,
  label: { value: "<ns:value>", many: true, meaning: "a label, such as type:bug; may be repeated" },
  "depends-on": {
    value: "<issue>",
    many: true,
    completes: "issue",
    meaning: "an issue that has to be done before; may be repeated",
  },
  gate: { value: "<key>", many: true, meaning: "a gate that it has to pass; may be repeated" },
  state: { value: "<state>", choices: ["backlog", "ready"], meaning: "backlog or ready (default ready)" },
};

export const command: Command = {
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
    if (from !== undefined) {
      const { createMany } = await import("../issue-bulk");
      return createMany(context, parsed, from);
    }
    return createOne(context, parsed, parsed.has("claim"));
  },
};

/** One issue as the flags describe it; claimed, if that is wanted. */
export async function createOne(context: Context, parsed: Parsed, isClaimed: boolean): Promise<Output> {
  // Whatever would keep it from being claimed is said before there is an issue.
  if (isClaimed) await readOptions(parsed, await context.workspace(), { keys: [], noun: "claim" });
  const desk = await openDesk(context);
  const others = await desk.reader.ids();
  const draft = await draftFrom(desk, parsed);
  const creator = await creatorAt(desk);
  const issue = await creator.createOne(draft, givenOnce(desk, parsed, isClaimed));
  const { id } = issue;
  const replayed = id !== draft.issue.id;
  const short = shortId(id, others);
  const data = {
    issue: newIssueJson(issue, draft, others),
    path: `${desk.reader.here.folder(id)}/issue.json`,
    replayed,
  };
  const created = `created ${short}: ${printable(issue.title)}`;
  if (!isClaimed) {
    // Outside of Git there are no claims.
    const next = desk.workspace === null ? "" : `\n  claim it: cotenant claim acquire ${short}`;
    return { data, text: context.quiet ? short : created + next };
  }
  const claimed = await acquire(context, parsed, await context.workspace(), {
    keys: [{ key: keyOfIssue(id), reach: "repository" }],
    steal: false,
    noun: "claim",
  });
  const text = context.quiet
    ? [short, claimed.text].filter((part) => part !== "").join("\n")
    : `${created}\n${claimed.text}`;
  return { data: { ...data, ...claimed.data }, text };
}

/** The id names the whole operation, and there are two of them when the issue is claimed as well. */
function givenOnce({ workspace }: Desk, parsed: Parsed, isClaimed: boolean): Ulid | null {
  if (workspace === null || parsed.text("request-id") === undefined) return null;
  if (isClaimed)
    throw new CotenantError("E_USAGE", "--request-id cannot be given to two operations at once", {
      hint: "create the issue first, and claim it then",
    });
  return requestId(workspace, parsed);
}

/** Creating needs no name: where nobody says who they are, the issue says so too, and the log does not. */
export async function creatorAt({ reader, workspace }: Desk): Promise<IssueWriter> {
  if (workspace === null) return new IssueWriter(reader, null, "off", "");
  const caller = await callerOrNull(workspace);
  if (caller === null) {
    await workspace.worktree("write");
    return new IssueWriter(reader, null, "off", "");
  }
  return new IssueWriter(reader, await workspace.session("write"), "off", caller.agentId);
}

async function draftFrom(desk: Desk, parsed: Parsed): Promise<Draft> {
  const { reader, workspace } = desk;
  const dependencies: Ulid[] = [];
  for (const typed of parsed.texts("depends-on")) dependencies.push(await meantId(reader, typed));
  const assignee = parsed.text("assignee");
  const state = parseState(parsed.text("state") ?? "ready");
  if (state !== "ready" && state !== "backlog")
    throw new CotenantError("E_USAGE", `a new issue cannot be ${state}`, {
      hint: "use --state backlog or ready",
    });
  return draft(workspace, {
    title: titleOf(parsed.text("title") ?? parsed.words[0]),
    description: (await givenDescription(parsed)) ?? "",
    priority: priorityOf(parsed.text("priority") ?? "normal"),
    assignee: assignee === undefined ? null : assigneeOf(assignee),
    files: filesOf(parsed.texts("file")),
    context: contextOf(parsed.texts("context")),
    gates: await knownGates(desk, parsed.texts("gate")),
    state,
    labels: labelsOf(parsed.texts("label")),
    dependencies,
  });
}

export interface Wanted {
  readonly title: string;
  readonly description: string;
  readonly priority: Draft["issue"]["priority"];
  readonly assignee: string | null;
  readonly files: readonly string[];
  readonly context: Readonly<Record<string, string>>;
  readonly gates: readonly string[];
  readonly state: Draft["issue"]["state"];
  readonly labels: readonly string[];
  readonly dependencies: readonly string[];
}

export async function draft(workspace: Workspace | null, wanted: Wanted): Promise<Draft> {
  const { clock, random } = nodePlatform();
  const { labels, dependencies, ...fields } = wanted;
  const unique = workspace?.config.values["issues.unique_labels"] ?? ["type"];
  const agentId = workspace === null ? "" : ((await callerOrNull(workspace))?.agentId ?? "");
  const issue = newIssue({
    ...fields,
    id: makeUlid(clock.wallMs(), random.bytes(10)),
    created_at: new Date(clock.wallMs()).toISOString(),
    created_by: agentId,
    stamp: { version: 1, origin: "", lease_id: null, fencing_token: null, sequence: null },
  });
  return { issue, labels: labelChange([], labels, [], unique).add, dependencies };
}
