import type { Flag, Parsed } from "../../../cli/grammar/command";
import { ACQUIRE_FLAGS, changeFrom } from "../../locks/commands/flags";
import type { FieldsRequest } from "../fields";
import { ISSUE_STATES, MAX_DESCRIPTION, MAX_TITLE, PRIORITIES } from "../model";
import type { CreateRequest } from "../operations/creation";
import type { AvailableRequest } from "../operations/query";
import type { FilterRequest } from "../query";

/** The fields of an issue, for commands that make or change one. */
export const FIELD_FLAGS: Readonly<Record<string, Flag>> = {
  title: { value: "<text>", meaning: `what is to be done, in at most ${MAX_TITLE} characters` },
  description: { value: "<text>", meaning: "the whole story; - reads it from standard input" },
  priority: {
    value: "<p>",
    choices: PRIORITIES,
    meaning: `one of ${PRIORITIES.join(", ")} (default normal)`,
  },
  assignee: { value: "<type:name>", completes: "agent", meaning: "who should do it" },
  file: {
    value: "<path>",
    many: true,
    completes: "path",
    meaning: "a file that it will change",
  },
  context: { value: "<name=text>", many: true, meaning: "something else to know about it" },
};

export async function fieldsFrom(parsed: Parsed): Promise<FieldsRequest> {
  const description = parsed.text("description");
  return {
    title: parsed.text("title"),
    description: description === "-" ? await standardInput(MAX_DESCRIPTION * 4) : description,
    priority: parsed.text("priority"),
    assignee: parsed.text("assignee"),
    files: parsed.texts("file"),
    context: parsed.texts("context"),
  };
}

export async function standardInput(most: number): Promise<string> {
  const { readStdin } = await import("../../../cli/terminal/stdin");
  return readStdin(most);
}

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

export async function createFrom(parsed: Parsed): Promise<CreateRequest> {
  const fields = await fieldsFrom(parsed);
  return {
    ...changeFrom(parsed),
    ...fields,
    title: fields.title ?? parsed.words[0],
    labels: parsed.texts("label"),
    dependsOn: parsed.texts("depends-on"),
    gates: parsed.texts("gate"),
    state: parsed.text("state"),
  };
}

// A new issue is free: there is nothing to wait for.
const { wait: _wait, timeout: _timeout, ...ACQUIRING } = ACQUIRE_FLAGS;

/** For an issue that is claimed as it is made. */
export const CLAIM_FLAGS: Readonly<Record<string, Flag>> = {
  ...ACQUIRING,
  "allow-blocked": { meaning: "claim it though it waits for another issue; needs --reason" },
};

/** What every query can be narrowed by. */
export const FILTER_FLAGS: Readonly<Record<string, Flag>> = {
  priority: {
    value: "<p>",
    many: true,
    choices: PRIORITIES,
    meaning: `only of this priority: ${PRIORITIES.join(", ")}`,
  },
  assignee: { value: "<type:name>", completes: "agent", meaning: "only those of this assignee" },
  label: { value: "<ns:value>", many: true, meaning: "only with this label" },
  type: { value: "<type>", many: true, meaning: "only of this type, as its type: label says" },
  limit: { value: "<n>", meaning: "at most so many" },
};

/** The same, for queries of which the state is no part. */
export const QUERY_FLAGS: Readonly<Record<string, Flag>> = {
  state: {
    value: "<state>",
    many: true,
    choices: ISSUE_STATES,
    meaning: `only in this state: ${ISSUE_STATES.join(", ")}`,
  },
  ...FILTER_FLAGS,
};

export const FREE_FILES_FLAG: Readonly<Record<string, Flag>> = {
  "free-files": { meaning: "leave out those whose declared files somebody else holds" },
};

export function filterFrom(parsed: Parsed): FilterRequest {
  return {
    states: parsed.texts("state"),
    priorities: parsed.texts("priority"),
    types: parsed.texts("type"),
    labels: parsed.texts("label"),
    assignee: parsed.text("assignee"),
    limit: parsed.whole("limit"),
  };
}

export function availableFrom(parsed: Parsed): AvailableRequest {
  return { ...filterFrom(parsed), freeFiles: parsed.has("free-files") };
}

export function reasonFlag(meaning: string): Readonly<Record<string, Flag>> {
  return { reason: { value: "<text>", meaning } };
}
