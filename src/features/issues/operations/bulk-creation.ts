import { CotenantError, usageError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { knownGates } from "../../gates/registry";
import { cycleIn } from "../cycles";
import type { Desk } from "../desk";
import { assigneeOf, descriptionOf, filesOf, labelsOf, priorityOf, titleOf } from "../fields";
import { meantId } from "../meant";
import { PRIORITIES } from "../model";
import { shortIds } from "../short-id";
import type { Draft } from "../writer";
import { type CreatedIssue, createdIssue, creatorAt, creatorName, draftFrom } from "./creation";

export interface BulkRequest {
  /** JSON: an array of issues, or one on each line. `ref` names one of them for the others' `dependencies`. */
  readonly text: string;
  /** What messages call it, such as the file that it comes from. */
  readonly source: string;
}

const MOST_ISSUES = 10_000;

type Entry = Readonly<Record<string, unknown>>;

/** Many issues at once: all that is wrong with any of them is said before the first one is written. */
export async function createIssues(
  desk: Desk,
  { text, source }: BulkRequest,
): Promise<readonly CreatedIssue[]> {
  const entries = entriesOf(text, source);
  const others = await desk.reader.ids();
  const drafts = await draftsFrom(desk, entries, source);
  const issues = await (await creatorAt(desk)).create(drafts);
  const short = shortIds([...others, ...issues.map(({ id }) => id)]);
  return issues.map((issue, at) => createdIssue(desk, issue, drafts[at]!, short.get(issue.id)!));
}

/** An array, or one object on each line. */
function entriesOf(text: string, source: string): { entry: Entry; where: string }[] {
  const isArray = text.trimStart().startsWith("[");
  const values: { value: unknown; where: string }[] = [];
  if (isArray) {
    const all = parsedJson(text, printable(source));
    for (const [at, value] of (all as unknown[]).entries()) values.push({ value, where: `issue ${at + 1}` });
  } else {
    for (const [at, line] of text.split("\n").entries())
      if (line.trim() !== "")
        values.push({ value: parsedJson(line, `line ${at + 1}`), where: `line ${at + 1}` });
  }
  if (values.length === 0) throw new CotenantError("E_USAGE", `there is no issue in ${printable(source)}`);
  if (values.length > MOST_ISSUES)
    throw new CotenantError("E_LIMIT", `${values.length} issues are more than ${MOST_ISSUES} at once`);
  return values.map(({ value, where }) => {
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return { entry: value as Entry, where };
    throw wrong(where, "it is not an object");
  });
}

function parsedJson(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw wrong(where, `it is not JSON (${printable((error as Error).message, 120)})`);
  }
}

const FIELDS = [
  "title",
  "description",
  "priority",
  "assignee",
  "state",
  "labels",
  "dependencies",
  "gates",
  "files",
  "context",
  "ref",
];

async function draftsFrom(
  desk: Desk,
  entries: readonly { entry: Entry; where: string }[],
  source: string,
): Promise<Draft[]> {
  const drafts: Draft[] = [];
  const refs = new Map<string, string>();
  const creator = await creatorName(desk);
  for (const { entry, where } of entries) {
    const made = await inWords(where, () => oneDraft(desk, entry, creator));
    drafts.push(made);
    const ref = entry["ref"];
    if (ref === undefined) continue;
    if (typeof ref !== "string" || ref === "") throw wrong(where, "its ref is not a name");
    if (refs.has(ref)) throw wrong(where, `there are two issues with the ref ${printable(ref)}`);
    refs.set(ref, made.issue.id);
  }
  const linked: Draft[] = [];
  for (const [at, made] of drafts.entries()) {
    const dependencies: string[] = [];
    for (const name of made.dependencies)
      dependencies.push(
        refs.get(name) ?? (await inWords(entries[at]!.where, () => meantId(desk.reader, name))),
      );
    linked.push({ ...made, dependencies: [...new Set(dependencies)] });
  }
  const circle = cycleIn(
    new Map(linked.map(({ issue, dependencies }) => [issue.id as string, dependencies])),
  );
  if (circle === null) return linked;
  const titles = circle.map((id) => linked.find(({ issue }) => issue.id === id)?.issue.title ?? id);
  throw new CotenantError(
    "E_CYCLE",
    `the issues in ${printable(source)} wait for each other: ${titles.map((title) => printable(title, 40)).join(" → ")}`,
    { hint: "take one of these dependencies out of the file; nothing was written", data: { cycle: circle } },
  );
}

async function oneDraft(desk: Desk, entry: Entry, creator: string): Promise<Draft> {
  const unknown = Object.keys(entry).find((name) => !FIELDS.includes(name));
  if (unknown !== undefined)
    throw usageError(`there is no field "${printable(unknown, 40)}"`, `use ${FIELDS.join(", ")}`);
  const assignee = entry["assignee"];
  const fields = {
    title: titleOf(textIn(entry, "title")),
    description: descriptionOf(textIn(entry, "description") ?? ""),
    priority: priorityOf(textIn(entry, "priority") ?? PRIORITIES[1]),
    assignee: typeof assignee === "string" ? assigneeOf(assignee) : null,
    files: filesOf(textsIn(entry, "files")),
    context: contextIn(entry["context"]),
    gates: await knownGates(desk.reader, textsIn(entry, "gates")),
    state: entry["state"] === "backlog" ? "backlog" : "ready",
    labels: labelsOf(textsIn(entry, "labels")),
    dependencies: textsIn(entry, "dependencies"),
  } as const;
  return draftFrom(desk, fields, creator);
}

function textIn(entry: Entry, name: string): string | undefined {
  const value = entry[name];
  if (value === undefined || typeof value === "string") return value;
  throw new CotenantError("E_USAGE", `${name} is not text`);
}

function textsIn(entry: Entry, name: string): string[] {
  const value = entry[name] ?? [];
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
  throw new CotenantError("E_USAGE", `${name} is not a list of texts`);
}

function contextIn(value: unknown): Record<string, string> {
  if (value === undefined) return {};
  const isFine =
    typeof value === "object" &&
    value !== null &&
    Object.entries(value).every(
      ([name, text]) => typeof text === "string" && /^[A-Za-z][\w.-]{0,79}$/.test(name),
    );
  if (isFine) return { ...(value as Record<string, string>) };
  throw new CotenantError("E_USAGE", "context is not an object of texts");
}

async function inWords<T>(where: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    throw new CotenantError(error.code, `${where}: ${error.message}`, {
      hint: error.hint,
      data: { ...error.data, where },
    });
  }
}

function wrong(where: string, why: string): CotenantError {
  return new CotenantError("E_USAGE", `${where}: ${why}`, {
    hint: "each issue is a JSON object with a title; nothing was written",
    data: { where },
  });
}
