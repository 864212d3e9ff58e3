import type { Context, Flag, Output, Parsed } from "../../../cli/grammar/command";
import { printable, type Ulid } from "../../../kernel/ids";
import { workersOn } from "../../ledger/workers";
import { HOLDER_FLAGS, proof } from "../../locks/commands/holding";
import { effective } from "../effective";
import { meantId } from "../meant";
import type { IssueState } from "../model";
import type { FoundIssue } from "../resolve";
import { shortId } from "../short-id";
import type { Change, WriteOptions } from "../writer";
import { type Desk, issueJson, openDesk, writerAt } from "./issues";

/** What every command that changes an issue takes. */
export const EDIT_FLAGS: Readonly<Record<string, Flag>> = HOLDER_FLAGS;

/** Changes one issue under its claim, and says what came of it. */
export async function edit(
  context: Context,
  parsed: Parsed,
  typed: string,
  plan: (desk: Desk, id: Ulid) => Promise<Change>,
  words: {
    /** In place of what proves the claim. */
    readonly proof?: (desk: Desk, parsed: Parsed) => Promise<WriteOptions>;
    /** More than that. */
    readonly options?: (desk: Desk, id: Ulid) => Promise<WriteOptions>;
    /** `written`: the state in the file, which a claim stands above. */
    readonly done: (issue: FoundIssue, written: IssueState) => string;
    readonly same: string;
    /** What follows from it, and is said after it. */
    readonly afterwards?: (desk: Desk, issue: FoundIssue) => Promise<string>;
  },
): Promise<Output> {
  const desk = await openDesk(context);
  const { reader, workspace } = desk;
  const id = await meantId(reader, typed);
  // Before the write: what is done must not be said to have failed because of what is read afterwards.
  const ids = await reader.ids();
  const short = shortId(id, ids);
  const change = await plan(desk, id);
  const writer = await writerAt(desk);
  const shown = await (words.proof ?? asHolder)(desk, parsed);
  const outcome = await writer.update(id, change, { ...shown, ...(await words.options?.(desk, id)) });
  workspace?.warnings.push(...outcome.warnings);
  const { found, changed, replayed } = outcome;
  const more = (await words.afterwards?.(desk, found)) ?? "";
  const counted = await asCounted(desk, found);
  const said = `${changed ? words.done(counted, found.state) : words.same}${more}`;
  const text = `${short}: ${said}\n  ${printable(found.issue.title)}`;
  return { data: { issue: issueJson(counted, ids), changed, replayed }, text: context.quiet ? "" : text };
}

/** With the state and the assignee that count now, for whoever is told what a write came to. As written where nobody can tell. */
export async function asCounted({ workspace }: Desk, found: FoundIssue): Promise<FoundIssue> {
  if (workspace === null) return found;
  try {
    const workers = await workersOn(workspace, found.id);
    const { state, assignee } = effective(workers, found);
    return { ...found, state, issue: { ...found.issue, state, assignee } };
  } catch {
    return found;
  }
}

async function asHolder({ workspace }: Desk, parsed: Parsed): Promise<WriteOptions> {
  return workspace === null ? {} : proof(workspace, parsed);
}
