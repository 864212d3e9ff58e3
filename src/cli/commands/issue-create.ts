import { CotenantError } from "../../errors/cotenant-error";
import {
  type Issue,
  MAX_DESCRIPTION,
  MAX_TITLE,
  newIssue,
  PRIORITIES,
  type Priority,
} from "../../issues/model";
import { shortId } from "../../issues/short-id";
import { makeUlid, printable, type Ulid } from "../../kernel/ids";
import { nodePlatform } from "../../platform/node/node";
import { callerOrNull } from "../caller";
import type { Command, Context, Flag, Parsed } from "../command";
import { issueJson, openCatalogue } from "../issues";

export const ISSUE_FLAGS: Readonly<Record<string, Flag>> = {
  title: { value: "<text>", meaning: `what is to be done, in at most ${MAX_TITLE} characters` },
  description: { value: "<text>", meaning: "the whole story" },
  priority: {
    value: "<p>",
    choices: PRIORITIES,
    meaning: `one of ${PRIORITIES.join(", ")} (default normal)`,
  },
};

export const command: Command = {
  usage: "issue create --title <text> [--description <text>] [--priority <p>]",
  about: "Writes down work to be done, as a plain file in .cotenant/issues/. Needs no lease.",
  flags: ISSUE_FLAGS,
  examples: ['cotenant issue create --title "Log in with a passkey" --priority high'],
  words: { min: 0, max: 1 },
  async run(context, parsed) {
    const { issue, others, path } = await createIssue(context, parsed);
    const short = shortId(issue.id, others);
    const text = context.quiet
      ? short
      : `created ${short}: ${printable(issue.title)}\n  claim it: cotenant claim acquire ${short}`;
    return { data: { issue: issueJson(issue, others), path }, text };
  },
};

/** Writes a new issue as the flags describe it. */
export async function createIssue(
  context: Context,
  parsed: Parsed,
): Promise<{ issue: Issue; others: readonly Ulid[]; path: string }> {
  const { catalogue, workspace } = await openCatalogue(context);
  const { clock, random } = nodePlatform();
  const title = titleOf(parsed.text("title") ?? parsed.words[0]);
  const description = descriptionOf(parsed.text("description") ?? "");
  const priority = priorityOf(parsed.text("priority") ?? "normal");
  const others = await catalogue.ids();
  const caller = workspace === null ? null : await callerOrNull(workspace);
  if (workspace !== null) await workspace.worktree("write");
  const now = new Date(clock.wallMs()).toISOString();
  const issue = newIssue({
    id: makeUlid(clock.wallMs(), random.bytes(10)),
    title,
    description,
    priority,
    created_at: now,
    created_by: caller?.agentId ?? "",
    stamp: {
      version: 1,
      origin: caller?.worktreeId ?? "",
      lease_id: null,
      fencing_token: null,
      sequence: null,
    },
  });
  return { issue, others, path: await catalogue.create(issue) };
}

function titleOf(text: string | undefined): string {
  const title = (text ?? "").trim();
  if (title === "") throw new CotenantError("E_USAGE", "an issue needs a title", { hint: 'add --title "…"' });
  if (title.length > MAX_TITLE)
    throw new CotenantError(
      "E_LIMIT",
      `the title has ${title.length} characters; the limit is ${MAX_TITLE}`,
      { hint: "put the rest into --description" },
    );
  if (/[\p{Cc}\u2028\u2029]/u.test(title))
    throw new CotenantError("E_USAGE", "the title contains control characters", {
      hint: "leave them out; line breaks belong in --description",
    });
  return title;
}

function descriptionOf(text: string): string {
  if (text.length > MAX_DESCRIPTION)
    throw new CotenantError(
      "E_LIMIT",
      `the description has ${text.length} characters; the limit is ${MAX_DESCRIPTION}`,
      { hint: "put the rest into a file beside the code, and name it here" },
    );
  return text;
}

function priorityOf(text: string): Priority {
  if ((PRIORITIES as readonly string[]).includes(text)) return text as Priority;
  throw new CotenantError("E_USAGE", `--priority cannot be "${printable(text)}"`, {
    hint: `use one of ${PRIORITIES.join(", ")}`,
  });
}
