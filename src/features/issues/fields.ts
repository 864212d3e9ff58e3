import { CotenantError, choiceOf, limitError, usageError } from "../../errors/cotenant-error";
import { parseAgentId, printable } from "../../kernel/ids";
import { isRefusal } from "../../kernel/refusal";
import { parseLabel } from "./labels";
import { MAX_DESCRIPTION, MAX_TITLE, PRIORITIES, type Priority } from "./model";

/** The fields of an issue that is made or changed. */
export interface FieldsRequest {
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly priority?: string | undefined;
  readonly assignee?: string | undefined;
  /** Files that it will change, from the repository's root. */
  readonly files?: readonly string[];
  /** What else to know about it, each as `name=text`. */
  readonly context?: readonly string[];
}

const MOST_ENTRIES = 200;
const MAX_ENTRY = 4_096;

export function titleOf(text: string | undefined): string {
  const title = (text ?? "").trim();
  if (title === "")
    throw new CotenantError("E_USAGE", "an issue needs a title", { hint: "add --title <title>" });
  if (title.length > MAX_TITLE)
    throw limitError(
      `the title has ${title.length} characters; the limit is ${MAX_TITLE}`,
      "put the rest into --description",
    );
  if (/[\p{Cc}\u2028\u2029]/u.test(title))
    throw new CotenantError("E_USAGE", "the title contains control characters", {
      hint: "leave them out; line breaks belong in --description",
    });
  return title;
}

/** Of something smaller than an issue, such as `a gate`. */
export function shortTitle(text: string, most: number, what: string): string {
  const title = text.trim();
  if (title.length > most)
    throw new CotenantError("E_LIMIT", `${what}'s title has at most ${most} characters`);
  if (/[\p{Cc}\u2028\u2029]/u.test(title))
    throw new CotenantError("E_USAGE", "the title contains control characters", { hint: "leave them out" });
  return title;
}

export function descriptionOf(text: string): string {
  if (text.length > MAX_DESCRIPTION)
    throw limitError(
      `the description has ${text.length} characters; the limit is ${MAX_DESCRIPTION}`,
      "put the rest into a file beside the code, and name it here ('cotenant doc add')",
    );
  return text.replaceAll("\r\n", "\n");
}

export function priorityOf(text: string): Priority {
  return choiceOf("--priority", text, PRIORITIES);
}

export function assigneeOf(text: string): string {
  const id = parseAgentId(text);
  if (!isRefusal(id)) return id;
  throw new CotenantError("E_USAGE", `"${printable(text)}" is not an agent's name`, {
    hint: "write type:name, such as agent:claude-1 or human:ada",
  });
}

/** Names of files as they are written from the repository's root; they need not exist yet. */
export function filesOf(texts: readonly string[]): string[] {
  return limited(texts, "--file").map((text) => {
    const path = text.replace(/^(?:\.\/)+/, "").replace(/\/+$/, "");
    const isOutside = path === "" || path.startsWith("/") || path.split("/").includes("..");
    if (!isOutside && !/\p{Cc}/u.test(path)) return path;
    throw new CotenantError("E_PATH_ESCAPE", `--file cannot be "${printable(text)}"`, {
      hint: "name files of the repository, from its root",
      data: { path: printable(text, 400) },
    });
  });
}

export function contextOf(texts: readonly string[]): Record<string, string> {
  const context: Record<string, string> = {};
  for (const text of limited(texts, "--context")) {
    const found = /^([A-Za-z][\w.-]{0,79})=([\s\S]*)$/.exec(text);
    if (found === null)
      throw usageError(`--context cannot be "${printable(text)}"`, "write name=text, such as branch=login");
    context[found[1]!] = found[2]!;
  }
  return context;
}

export function labelsOf(texts: readonly string[]): string[] {
  return limited(texts, "--label").map(parseLabel);
}

function limited(texts: readonly string[], flag: string): readonly string[] {
  if (texts.length > MOST_ENTRIES || texts.some((text) => text.length > MAX_ENTRY))
    throw new CotenantError(
      "E_LIMIT",
      `${flag} takes at most ${MOST_ENTRIES} values of ${MAX_ENTRY} characters`,
    );
  return texts;
}
