import type { Command, Context, Output, Parsed } from "../../../cli/grammar/command";
import { fileFailure } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { EDIT_FLAGS, edit } from "../../issues/commands/editing";
import { type Desk, openDesk } from "../../issues/commands/issues";
import { isFound } from "../../issues/resolve";
import { gateOf, refuseEnded, refuseTakingOff, withGates } from "../passing";
import { readRegistry, registryWith } from "../registry";
import { readResults } from "../results";
import { changeRegistry } from "./gate-registry";
import { deciding, definitionOf, resultOptions } from "./gates";

export const command: Command = {
  usage: "gate remove [<issue>] <key>",
  about:
    "With an issue: takes the gate off it, which before it is passed only those may who may pass it (gates.pass_by). If it\nwas the last one to pass of an issue that waited for it, the issue is done. Without: removes the gate's definition, under the lease scope:gates. Issues that have it must still\npass it, or have it taken off.",
  flags: EDIT_FLAGS,
  examples: ["cotenant gate remove 7x3k tests --agent-id human:me", "cotenant gate remove tests"],
  words: { min: 1, max: 2 },
  completes: ["gate", "gate"],
  async run(context, parsed) {
    const [first, second] = parsed.words as [string, string | undefined];
    return second === undefined ? fromRegistry(context, first) : fromIssue(context, parsed, first, second);
  },
};

async function fromIssue(context: Context, parsed: Parsed, typed: string, key: string): Promise<Output> {
  return edit(
    context,
    parsed,
    typed,
    async ({ reader, workspace }) =>
      async (current) => {
        refuseEnded(current);
        gateOf(current, key);
        const { id, issue } = current;
        const gates = issue.gates.filter((gate) => gate !== key);
        const seen = await readResults(reader, current);
        if (workspace !== null) {
          const { decider, passBy } = await deciding(workspace);
          refuseTakingOff(current, key, seen, decider, passBy);
        }
        return withGates(current, gates, seen, [
          { type: "gate.removed", payload: { issue_id: id, gate: key } },
        ]);
      },
    {
      proof: resultOptions,
      done: ({ issue }) =>
        issue.state === "done"
          ? `without ${printable(key, 80)} nothing is left to pass: done`
          : `gates: ${issue.gates.map((gate) => printable(gate, 80)).join(", ") || "none"}`,
      same: "it does not have it",
    },
  );
}

async function fromRegistry(context: Context, key: string): Promise<Output> {
  const workspace = await context.workspace();
  const { platform } = workspace.surroundings;
  const { worktreeRoot } = workspace.repository;
  await changeRegistry(workspace, async () => {
    const registry = await readRegistry(platform, worktreeRoot);
    // One that is broken, or there twice, can be removed as well.
    if (!registry.problems.some((problem) => problem.key === key)) definitionOf(registry, key);
    return { text: registryWith(registry, key, null), payload: { gate: key, removed: true } };
  }).catch((error: unknown) => {
    throw fileFailure(error, "changing the gates", worktreeRoot);
  });
  const having = await issuesWith(await openDesk(context), key);
  const remark =
    having === 0 ? "" : `\n  ${count(having, "open issue")} must still pass it, or have it taken off`;
  return {
    data: { gate_key: key, issues: having },
    text: context.quiet ? "" : `${printable(key, 80)} is no longer defined${remark}`,
  };
}

async function issuesWith({ reader }: Desk, key: string): Promise<number> {
  const found = await reader.findAll(await reader.ids());
  const open = [...found.values()].filter(isFound).filter(({ isDeleted }) => !isDeleted);
  return open.filter(
    ({ state, issue }) =>
      issue.gates.includes(key) && state !== "done" && state !== "rejected" && state !== "archived",
  ).length;
}
