import type { Command, Parsed } from "../../../cli/grammar/command";
import { CotenantError, orThrow } from "../../../errors/cotenant-error";
import { checkText } from "../../../kernel/policy";
import { pendingGates } from "../../gates/results";
import { givenReason } from "../../locks/commands/holding";
import { releaseIfHeld } from "../../locks/commands/releasing";
import { fieldChanges } from "../changes";
import { finishCheck } from "../claimable";
import { labelChange } from "../labels";
import { ISSUE_STATES, type Issue, type IssueState } from "../model";
import { parseState, stateAfter } from "../states";
import { EDIT_FLAGS, edit } from "./editing";
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

export const command: Command = {
  usage: "issue update <id> [--state <state>] [--title <text>] [--description <text>] [--priority <p>] …",
  about:
    "Changes an issue that you have claimed. An issue that is done and has gates to pass becomes gated, and done\nwhen the last one is passed. 'cotenant close <id>' is short for --state done --release,\n'cotenant in-progress <id>' for --state in_progress.",
  flags: {
    ...EDIT_FLAGS,
    ...FIELD_FLAGS,
    state: { value: "<state>", choices: ISSUE_STATES, meaning: `one of ${ISSUE_STATES.join(", ")}` },
    label: { value: "<ns:value>", many: true, meaning: "add a label" },
    "remove-label": { value: "<ns:value>", many: true, meaning: "take a label away" },
    "remove-file": { value: "<path>", many: true, meaning: "a file that it does not change after all" },
    reason: { value: "<text>", meaning: "with --state done: how it was done, kept as its resolution" },
    release: { meaning: "give the claim back as well" },
    "allow-blocked": { meaning: "with --state done: though it waits for another issue; needs --reason" },
    "remove-context": { value: "<name>", many: true, meaning: "forget what was known under this name" },
  },
  examples: ["cotenant issue update 7x3k --state in_progress", "cotenant issue update 7x3k --state done"],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const given = await givenFields(parsed);
    const add = labelsOf(parsed.texts("label"));
    const remove = parsed.texts("remove-label");
    const state = parsed.text("state");
    const wanted = state === undefined ? null : parseState(state);
    const asked = [given.fields, given.lists].some((part) => Object.keys(part).length > 0);
    if (!asked && add.length + remove.length === 0 && wanted === null)
      throw new CotenantError("E_USAGE", "nothing to change was given", {
        hint: "say what: --state, --title, --description, --priority, --assignee, --label, --file, --context",
      });
    const reason = reasonFor(parsed, wanted);
    const allowsBlocked = parsed.has("allow-blocked");
    return edit(
      context,
      parsed,
      parsed.words[0]!,
      async ({ workspace, reader }, id) => {
        const check = wanted === "done" && !allowsBlocked ? await finishCheck(reader, id) : null;
        const unique = workspace?.config.values["issues.unique_labels"] ?? ["type"];
        return async (current) => {
          const { issue, labels } = current;
          check?.(current);
          const pending = wanted === "done" ? await pendingGates(reader, current) : [];
          const fields: Partial<Issue> = {
            ...given.fields,
            ...given.apply(issue),
            ...(wanted === null ? {} : { state: stateAfter(issue, wanted, pending) }),
            ...(reason === null ? {} : { resolution: reason }),
          };
          const changes = fieldChanges(issue, fields);
          const set = labelChange(labels, add, remove, unique);
          const isSame =
            set.add.every((label) => labels.includes(label)) &&
            !set.remove.some((label) => labels.includes(label));
          if (Object.keys(changes).length === 0 && isSame) return null;
          const payload = { issue_id: issue.id, changes, ...(isSame ? {} : { labels: set }) };
          return { fields, labels: set, events: [{ type: "issue.updated", payload }] };
        };
      },
      {
        done: ({ state }, written) => {
          if (wanted === "done" && written === "gated") return "gated: it is done once its gates are passed";
          return state === written || wanted === null
            ? state
            : `${written} once its claim is given back, ${state} until then`;
        },
        same: "nothing to change",
        afterwards: async ({ workspace }, { id }) =>
          parsed.has("release") && workspace !== null && (await releaseIfHeld(parsed, workspace, id))
            ? ", and its claim is given back"
            : "",
      },
    );
  },
};

/** How it was done, or why it cannot wait. */
function reasonFor(parsed: Parsed, wanted: IssueState | null): string | null {
  if (wanted === "done")
    return parsed.has("allow-blocked")
      ? givenReason(parsed, "finishing an issue that waits for another")
      : givenText(parsed);
  for (const flag of ["allow-blocked", "reason"])
    if (parsed.has(flag) || parsed.text(flag) !== undefined)
      throw new CotenantError("E_USAGE", `--${flag} goes with --state done`, {
        hint: `leave out --${flag}, or say what the issue becomes`,
      });
  return null;
}

function givenText(parsed: Parsed): string | null {
  const reason = parsed.text("reason") ?? null;
  orThrow(checkText(reason, "reason"));
  return reason;
}

async function givenFields(parsed: Parsed) {
  const title = parsed.text("title");
  const description = await givenDescription(parsed);
  const priority = parsed.text("priority");
  const assignee = parsed.text("assignee");
  const files = filesOf(parsed.texts("file"));
  const gone = parsed.texts("remove-file");
  const context = contextOf(parsed.texts("context"));
  const forgotten = parsed.texts("remove-context");
  const fields: Partial<Issue> = {
    ...(title === undefined ? {} : { title: titleOf(title) }),
    ...(description === undefined ? {} : { description }),
    ...(priority === undefined ? {} : { priority: priorityOf(priority) }),
    ...(assignee === undefined ? {} : { assignee: assigneeOf(assignee) }),
  };
  const hasFiles = files.length + gone.length > 0;
  const hasContext = Object.keys(context).length + forgotten.length > 0;
  const apply = (issue: Issue): Partial<Issue> => ({
    ...(hasFiles
      ? { files: [...new Set([...issue.files, ...files])].filter((path) => !gone.includes(path)) }
      : {}),
    ...(hasContext
      ? {
          context: Object.fromEntries(
            Object.entries({ ...issue.context, ...context }).filter(([name]) => !forgotten.includes(name)),
          ),
        }
      : {}),
  });
  const lists: Readonly<Record<string, true>> = {
    ...(hasFiles ? { files: true } : {}),
    ...(hasContext ? { context: true } : {}),
  };
  return { fields, lists, apply };
}
