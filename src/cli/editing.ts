import type { FoundIssue } from "../issues/resolve";
import { shortId } from "../issues/short-id";
import type { Change, WriteOptions } from "../issues/writer";
import { printable, type Ulid } from "../kernel/ids";
import type { Context, Flag, Output, Parsed } from "./command";
import { HOLDER_FLAGS, proof } from "./holding";
import { type Desk, issueJson, meantId, openDesk, writerAt } from "./issues";

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
    readonly done: (issue: FoundIssue) => string;
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
  const said = `${changed ? words.done(found) : words.same}${more}`;
  const text = `${short}: ${said}\n  ${printable(found.issue.title)}`;
  return { data: { issue: issueJson(found, ids), changed, replayed }, text: context.quiet ? "" : text };
}

async function asHolder({ workspace }: Desk, parsed: Parsed): Promise<WriteOptions> {
  return workspace === null ? {} : proof(workspace, parsed);
}
