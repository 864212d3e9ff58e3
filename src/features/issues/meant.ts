import { type Ulid, ulidIn } from "../../kernel/ids";
import type { IssueReader } from "./reader";
import type { FoundIssue } from "./resolve";
import { resolveId } from "./short-id";

/** The one issue that somebody means. */
export async function meant(reader: IssueReader, typed: string): Promise<FoundIssue> {
  return reader.get(await meantId(reader, typed));
}

/** A whole id is not looked for among all the others. */
export async function meantId(reader: IssueReader, typed: string): Promise<Ulid> {
  const whole = wholeId(typed);
  if (whole !== null && (await reader.find(whole)) !== null) return whole;
  return resolveId(typed, await reader.ids());
}

export function wholeId(typed: string): Ulid | null {
  return typed.length === 26 ? ulidIn(typed) : null;
}
