import type { Context, Flag, Output, Parsed } from "../../../cli/grammar/command";
import { NO_TRUST, readTrust, type Trust } from "../../../config/trust";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError, orThrow } from "../../../errors/cotenant-error";
import { agentType, printable, type Ulid } from "../../../kernel/ids";
import { checkText } from "../../../kernel/policy";
import { asCounted } from "../../issues/commands/editing";
import { type Desk, issueJson, openDesk, writerAt } from "../../issues/commands/issues";
import { meantId } from "../../issues/meant";
import type { FoundIssue } from "../../issues/resolve";
import { shortId } from "../../issues/short-id";
import type { WriteOptions } from "../../issues/writer";
import { HOLDER_FLAGS, proof } from "../../locks/commands/holding";
import { type Decider, gateOf, mayPass, refuseEnded, refusePass } from "../passing";
import { type GateDefinition, type Registry, readRegistry } from "../registry";
import { type GateResults, type GateStatus, gateStatus, pendingAmong } from "../results";
import { checkedState, recordResult } from "../running";
import { isTrusted } from "../trust";

export const RESULT_FLAGS: Readonly<Record<string, Flag>> = {
  ...HOLDER_FLAGS,
  reason: { value: "<text>", meaning: "why; kept with the result" },
};

/** The gates that are defined here, and which of their commands this clone trusts. */
export async function gatesAt({ reader, workspace }: Desk): Promise<{ registry: Registry; trust: Trust }> {
  const { platform, here } = reader.sources;
  const registry = await readRegistry(platform, here.root);
  const trust = workspace === null ? NO_TRUST : await readTrust(platform, workspace.repository.controlDir);
  return { registry, trust };
}

export function definitionJson(desk: Desk, trust: Trust, gate: GateDefinition): Record<string, unknown> {
  return { ...gate, trusted: isTrusted(desk.reader.sources.platform.digest, trust, gate) };
}

/** What a gate comes to for one issue, with the results that count. */
export function issueGateJson(
  gate: string,
  results: GateResults,
  definition: GateDefinition | undefined,
): Record<string, unknown> {
  return {
    key: gate,
    status: gateStatus(results, gate),
    defined: definition !== undefined,
    kind: definition?.kind ?? null,
    results: results.standing.get(gate) ?? [],
  };
}

export function definitionOf({ gates, problems }: Registry, key: string): GateDefinition {
  const gate = gates.get(key);
  if (gate !== undefined) return gate;
  const problem = problems.find((one) => one.key === key);
  if (problem !== undefined)
    throw new CotenantError("E_CONFIG", `.cotenant/gates/registry.json: ${problem.message}`, {
      hint: "mend it with an editor, or define it anew with 'cotenant gate define --replace'",
      data: { gate: key },
    });
  const known = [...gates.keys()];
  throw new CotenantError("E_NOT_FOUND", `no gate "${printable(key, 80)}" is defined here`, {
    hint:
      known.length === 0
        ? `define it first: cotenant gate define ${printable(key, 80)}`
        : `there are ${known.slice(0, 20).join(", ")}; 'cotenant gate define' makes another`,
    data: { gate: printable(key, 80), gates: known },
  });
}

/** What is said of them travels in the log with one write. */
export const MOST_GATES_OF_ISSUE = 20;
const registries = new WeakMap<Desk, Promise<Registry>>();

/** Gates that a new issue is to have, each once: they must be defined. One look at the registry does for many issues. */
export async function knownGates(desk: Desk, keys: readonly string[]): Promise<string[]> {
  const wanted = [...new Set(keys)];
  if (wanted.length === 0) return wanted;
  const { platform, here } = desk.reader.sources;
  const registry = registries.get(desk) ?? readRegistry(platform, here.root);
  registries.set(desk, registry);
  for (const key of wanted) definitionOf(await registry, key);
  refuseTooMany(wanted);
  return wanted;
}

export function refuseTooMany(gates: readonly string[]): void {
  if (gates.length <= MOST_GATES_OF_ISSUE) return;
  throw new CotenantError("E_LIMIT", `an issue has at most ${MOST_GATES_OF_ISSUE} gates`, {
    hint: "let one command check several things",
  });
}

/** Persons, CI and administrators need no claim for a gate's result; an agent does, as configured. */
export async function resultOptions({ workspace }: Desk, parsed: Parsed): Promise<WriteOptions> {
  if (workspace === null) return {};
  const { decider, passBy } = await deciding(workspace);
  const isFree = agentType(decider.agentId) !== "agent" || mayPass(passBy, decider);
  return { ...(await proof(workspace, parsed)), ...(isFree ? { enforcement: "off" } : {}) };
}

/** Who asks, and who may decide. */
export async function deciding(
  workspace: Workspace,
): Promise<{ decider: Decider; passBy: readonly string[] }> {
  const { agentId, harness } = await workspace.agent();
  return {
    decider: { agentId, isInHarness: harness !== null },
    passBy: workspace.config.values["gates.pass_by"],
  };
}

/** `gate pass` and `gate fail`. */
export async function decide(context: Context, parsed: Parsed, status: "passed" | "failed"): Promise<Output> {
  const [typed, key] = parsed.words as [string, string];
  const reason = parsed.text("reason") ?? null;
  orThrow(checkText(reason, "reason"));
  const desk = await openDesk(context);
  const { reader, workspace } = desk;
  const id = await meantId(reader, typed);
  const found = await reader.get(id);
  gateOf(found, key);
  const options = await resultOptions(desk, parsed);
  // With a request id it may be the very call that has ended the issue; the write finds out.
  if (options.requestId == null) refuseEnded(found);
  const { registry } = await gatesAt(desk);
  if (status === "passed" && workspace !== null) {
    const { decider, passBy } = await deciding(workspace);
    refusePass(found, key, registry.gates.get(key)?.kind ?? null, decider, passBy);
  }
  const by = workspace === null ? "" : (await workspace.agent()).agentId;
  const state = await checkedState(reader);
  const given = { gate: key, status, kind: "manual", by, reason, ...state } as const;
  // Before the write: what is done must not be said to have failed because of what is read afterwards.
  const ids = await reader.ids();
  const outcome = await recordResult(reader, await writerAt(desk), { id }, options, given);
  workspace?.warnings.push(...outcome.warnings);
  const counted = await asCounted(desk, outcome.found);
  return {
    data: {
      issue: issueJson(counted, ids),
      changed: outcome.changed,
      replayed: outcome.replayed,
      gate: issueGateJson(key, outcome.results, registry.gates.get(key)),
    },
    text: context.quiet ? "" : outcomeText(counted, outcome.results, key, ids),
  };
}

/** What a result came to, for people. */
export function outcomeText(
  found: FoundIssue,
  results: GateResults,
  key: string,
  ids: readonly Ulid[],
): string {
  const { issue } = found;
  const short = shortId(issue.id, ids);
  const pending = pendingAmong(issue.gates, results).map((gate) => printable(gate, 80));
  const status = gateStatus(results, key);
  const said = `${short}: ${printable(key, 80)} ${WORDS[status]}`;
  return `${said}; ${consequence(issue.state, pending)}\n  ${printable(issue.title)}`;
}

const WORDS: Readonly<Record<GateStatus, string>> = {
  passed: "passed",
  failed: "failed",
  pending: "still has to be passed",
};

function consequence(state: string, pending: readonly string[]): string {
  if (state === "done") return "all gates are passed, and the issue is done";
  if (pending.length === 0) return `all gates are passed, and the issue is ${state}`;
  if (state === "gated") return `the issue stays gated until ${pending.join(", ")} passed`;
  return `the issue is ${state}, with ${pending.join(", ")} to pass`;
}
