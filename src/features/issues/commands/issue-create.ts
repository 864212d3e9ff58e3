import type { Command, Context, Flag, Output, Parsed } from "../../../cli/grammar/command";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { byKey } from "../../../kernel/commands";
import { makeUlid, printable, type Ulid } from "../../../kernel/ids";
import { nodePlatform } from "../../../platform/node/node";
import { knownGates } from "../../gates/commands/gates";
import { ACQUIRE_FLAGS, acquire, readOptions } from "../../locks/commands/acquiring";
import { givenReason, requestId } from "../../locks/commands/holding";
import { keyOfIssue } from "../claim-refs";
import { openNeeds, refuseOpenNeeds } from "../claimable";
import { createClaimed, idForRequest } from "../claimed-creation";
import { labelChange } from "../labels";
import { meantId } from "../meant";
import { type Issue, newIssue } from "../model";
import { shortId } from "../short-id";
import { parseState } from "../states";
import { type Draft, IssueWriter } from "../writer";
import {
  assigneeOf,
  contextOf,
  FIELD_FLAGS,
  filesOf,
  givenDescription,
  labelsOf,
  priorityOf,
  titleOf,
} from "./issue-fields";
import { type Desk, newIssueJson, openDesk } from "./issues";

// A new issue is free: there is nothing to wait for.
const { wait: _wait, timeout: _timeout, ...ACQUIRING } = ACQUIRE_FLAGS;

/** For an issue that is claimed as it is made. */
export const CLAIM_FLAGS: Readonly<Record<string, Flag>> = {
  ...ACQUIRING,
  "allow-blocked": { meaning: "claim it though it waits for another issue; needs --reason" },
};

export const CREATE_FLAGS: Readonly<Record<string, Flag>> = {
  ...FIELD_FLAGS,
  label: { value: "<ns:value>", many: true, meaning: "a label, such as type:bug" },
  "depends-on": {
    value: "<issue>",
    many: true,
    completes: "issue",
    meaning: "an issue that has to be done before",
  },
  gate: { value: "<key>", many: true, meaning: "a gate that it has to pass" },
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
      const { createMany } = await import("./issue-bulk");
      return createMany(context, parsed, from);
    }
    return createOne(context, parsed, parsed.has("claim"));
  },
};

/** One issue as the flags describe it; claimed, if that is wanted. */
export async function createOne(context: Context, parsed: Parsed, isClaimed: boolean): Promise<Output> {
  if (isClaimed) return createAndClaim(context, parsed);
  const desk = await openDesk(context);
  const others = await desk.reader.ids();
  const draft = await draftFrom(desk, parsed);
  const creator = await creatorAt(desk);
  const once = desk.workspace === null ? null : requestId(desk.workspace, parsed);
  const made = madeOutput(desk, await creator.createOne(draft, once), draft, others);
  // Outside of Git there are no claims.
  const next = desk.workspace === null ? "" : `\n  claim it: cotenant claim acquire ${made.short}`;
  return { data: made.data, text: context.quiet ? made.short : made.created + next };
}

async function createAndClaim(context: Context, parsed: Parsed): Promise<Output> {
  // Whatever can be told from the words alone is said before anything is written.
  const workspace = await context.workspace();
  const options = await readOptions(parsed, workspace, { keys: [], noun: "claim" });
  if (parsed.has("allow-blocked")) givenReason(parsed, "claiming an issue that waits for another");
  const desk = await openDesk(context);
  const { reader } = desk;
  const others = await reader.ids();
  const { platform } = workspace.surroundings;
  const ownId = options.requestId === null ? null : idForRequest(platform, options.requestId);
  const draft = await draftFrom(desk, parsed, ownId);
  const { id } = draft.issue;
  if (!parsed.has("allow-blocked"))
    refuseOpenNeeds(id, await openNeeds(reader, draft.dependencies), "claimed");
  const key = keyOfIssue(id);
  const { claimed, issue } = await createClaimed({
    claim: () =>
      acquire(context, parsed, workspace, {
        keys: [{ key, reach: "repository" }],
        steal: false,
        noun: "claim",
      }),
    create: async () => {
      const made = ownId === null ? null : await reader.find(id);
      return made === null ? (await creatorAt(desk)).createOne(draft, null) : (await reader.get(id)).issue;
    },
    giveBack: async () => (await workspace.session("write")).release([byKey(key)]),
  });
  const { data, created, short } = madeOutput(desk, issue, draft, others);
  const text = context.quiet
    ? [short, claimed.text].filter((part) => part !== "").join("\n")
    : `${created}\n${claimed.text}`;
  return { data: { ...data, ...claimed.data }, text };
}

function madeOutput({ reader }: Desk, issue: Issue, draft: Draft, others: readonly Ulid[]) {
  const { id } = issue;
  const short = shortId(id, others);
  const data = {
    issue: newIssueJson(issue, draft, others),
    path: `${reader.here.folder(id)}/issue.json`,
    replayed: id !== draft.issue.id,
  };
  return { data, short, created: `created ${short}: ${printable(issue.title)}` };
}

/** Creating needs no name: where nobody says who they are, the issue says so too, and the log does not. */
export async function creatorAt({ reader, workspace }: Desk): Promise<IssueWriter> {
  if (workspace === null) return new IssueWriter(reader, null, "off", "");
  const caller = await workspace.actorOrNull();
  if (caller === null) {
    await workspace.worktree("write");
    return new IssueWriter(reader, null, "off", "");
  }
  return new IssueWriter(reader, await workspace.session("write"), "off", caller.agentId);
}

async function draftFrom(desk: Desk, parsed: Parsed, id: Ulid | null = null): Promise<Draft> {
  const { reader, workspace } = desk;
  const dependencies: Ulid[] = [];
  for (const typed of parsed.texts("depends-on")) dependencies.push(await meantId(reader, typed));
  const assignee = parsed.text("assignee");
  const state = parseState(parsed.text("state") ?? "ready");
  if (state !== "ready" && state !== "backlog")
    throw new CotenantError("E_USAGE", `a new issue cannot be ${state}`, {
      hint: "use --state backlog or ready",
    });
  const wanted: Wanted = {
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
  };
  return draft(workspace, wanted, id);
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

/** `id`: of one that a request names; else a new one. */
export async function draft(
  workspace: Workspace | null,
  wanted: Wanted,
  id: Ulid | null = null,
): Promise<Draft> {
  const { clock, random } = nodePlatform();
  const { labels, dependencies, ...fields } = wanted;
  const unique = workspace?.config.values["issues.unique_labels"] ?? ["type"];
  const agentId = workspace === null ? "" : ((await workspace.actorOrNull())?.agentId ?? "");
  const issue = newIssue({
    ...fields,
    id: id ?? makeUlid(clock.wallMs(), random.bytes(10)),
    created_at: new Date(clock.wallMs()).toISOString(),
    created_by: agentId,
    stamp: { version: 1, origin: "", lease_id: null, fencing_token: null, sequence: null },
  });
  return { issue, labels: labelChange([], labels, [], unique).add, dependencies };
}
