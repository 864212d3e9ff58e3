import type { Command, Context, Output } from "../../../cli/grammar/command";
import { columns } from "../../../cli/terminal/render";
import { printable } from "../../../kernel/ids";
import { type Desk, openDesk } from "../../issues/commands/issues";
import { meant } from "../../issues/meant";
import { shortId } from "../../issues/short-id";
import type { GateDefinition } from "../registry";
import { gateStatus, pendingAmong, readResults } from "../results";
import { definitionJson, gatesAt, issueGateJson } from "./gates";

export const command: Command = {
  usage: "gate list [<issue>]",
  about: "Lists the gates that are defined here; with an issue, its gates and how they stand.",
  flags: {},
  examples: ["cotenant gate list", "cotenant gate list 7x3k"],
  words: { min: 0, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const desk = await openDesk(context);
    const [typed] = parsed.words;
    return typed === undefined ? definitions(context, desk) : ofIssue(context, desk, typed);
  },
};

async function definitions(context: Context, desk: Desk): Promise<Output> {
  const { registry, trust } = await gatesAt(desk);
  for (const { message } of registry.problems)
    desk.workspace?.warnings.push(`.cotenant/gates/registry.json: ${message}`);
  const gates = [...registry.gates.values()].map((gate) => definitionJson(desk, trust, gate));
  const rows = gates.map((gate) => {
    const { key, title, kind, command: line } = gate as unknown as GateDefinition;
    const runs = line === null ? "" : printable(line, 60);
    return [key, kind, runs, gate["trusted"] === false ? "waits for trust" : "", printable(title, 60)];
  });
  const text =
    rows.length === 0
      ? "no gates are defined; 'cotenant gate define' makes one"
      : columns(context.terminal, ["KEY", "KIND", "RUNS", "", "TITLE"], rows);
  return { data: { gates }, text };
}

async function ofIssue(context: Context, desk: Desk, typed: string): Promise<Output> {
  const { reader } = desk;
  const found = await meant(reader, typed);
  const { registry, trust } = await gatesAt(desk);
  const results = await readResults(reader, found);
  const keys = [...new Set(found.issue.gates)];
  const defined = keys.flatMap((key) => registry.gates.get(key) ?? []);
  const rows = keys.map((key) => {
    const last = results.standing.get(key)?.at(-1);
    const who = last === undefined ? "" : `${printable(last.by, 80)}, ${printable(last.at, 40)}`;
    const kind = registry.gates.get(key)?.kind ?? "not defined";
    return [printable(key, 80), gateStatus(results, key), kind, who];
  });
  const pending = pendingAmong(keys, results);
  const short = shortId(found.id, await reader.ids());
  const head = `${short}  ${found.state}  ${printable(found.issue.title)}`;
  const table = columns(context.terminal, ["GATE", "STATUS", "KIND", "BY"], rows);
  // Two branches may each have passed what the other lacked.
  const stuck =
    found.state === "gated" && pending.length === 0
      ? [`every gate is passed: cotenant issue update ${short} --state done`]
      : [];
  return {
    data: {
      issue_id: found.id,
      state: found.state,
      gates: defined.map((gate) => definitionJson(desk, trust, gate)),
      results: keys.map((key) => issueGateJson(key, results, registry.gates.get(key))),
      pending,
    },
    text: [head, rows.length === 0 ? "it has no gates" : table, ...stuck].join("\n"),
  };
}
