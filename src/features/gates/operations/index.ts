import { type HolderRequest, proofOf } from "../../../coordinator/requests";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError, orThrow } from "../../../errors/cotenant-error";
import { agentType, type Ulid } from "../../../kernel/ids";
import { checkText } from "../../../kernel/policy";
import type { Commands } from "../../../platform/commands";
import { authorAt, type Desk, type RepositoryDesk, writerAt } from "../../issues/desk";
import { meantId } from "../../issues/meant";
import {
  asCounted,
  type ChangedIssue,
  changeIssue,
  type IssueRequest,
} from "../../issues/operations/issue-change";
import type { FoundIssue } from "../../issues/resolve";
import { shortId } from "../../issues/short-id";
import type { WriteOptions } from "../../issues/writer";
import { definitionOf, type GateDefinition, type Registry, refuseTooMany } from "../registry";
import {
  type GateResult,
  type GateResults,
  type GateStatus,
  gateStatus,
  pendingAmong,
  readResults,
  resetLines,
} from "../results";
import { type Decider, gateOf, mayPass, refuseEnded, refusePass, refuseTakingOff, withGates } from "../rules";
import {
  automatedGates,
  checkedState,
  type RanGate,
  recordResult,
  refuseUntrusted,
  runAndRecord,
} from "../run";
import { type DefinedGate, definedGate, definitions, gatesAt, type Known } from "./definitions";

/** Gates: what an issue has to pass before it is done. */

/** How one gate stands with an issue. */
export interface StandingGate {
  readonly key: string;
  readonly status: GateStatus;
  /** Null for one that nobody has defined here. */
  readonly definition: DefinedGate | null;
  /** The results that count. */
  readonly results: readonly GateResult[];
}

export interface IssueGates {
  readonly found: FoundIssue;
  readonly shortId: string;
  readonly gates: readonly StandingGate[];
  /** Those that are still to be passed. */
  readonly pending: readonly string[];
}

export interface GateRequest extends IssueRequest {
  readonly gate: string;
}

export interface DecideRequest extends GateRequest {
  readonly reason?: string | undefined;
}

/** What an issue comes to by results of its gates. */
export interface Decided extends IssueGates {
  readonly changed: boolean;
  readonly replayed: boolean;
}

export interface RunDesk extends RepositoryDesk {
  readonly commands: Commands;
}

export interface RunRequest extends IssueRequest {
  /** Default: all automated ones that are not passed yet. */
  readonly gate?: string | undefined;
  /** Also those that are passed already. */
  readonly all?: boolean;
  readonly onStart?: ((gate: GateDefinition) => void) | undefined;
  readonly onEnd?: ((ran: RanGate) => void) | undefined;
}

export interface Ran extends IssueGates {
  readonly runs: readonly RanGate[];
}

export const gate = {
  ...definitions,

  /** How an issue's gates stand, or one of them. */
  async standing(
    desk: Desk,
    request: { readonly issue: string; readonly gate?: string | undefined },
  ): Promise<IssueGates> {
    const { reader } = desk;
    const known = await knownOf(desk, request.issue);
    const found = await reader.get(known.id);
    const keys = request.gate === undefined ? found.issue.gates : [gateOf(found, request.gate)];
    return standingOf(desk, known, found, keys, await readResults(reader, found));
  },

  /** What was said of a gate before it was taken off does not count. */
  add(desk: Desk, request: IssueRequest & { readonly gates: readonly string[] }): Promise<ChangedIssue> {
    const { reader } = desk;
    const keys = [...new Set(request.gates)];
    return changeIssue(desk, request, async (id) => {
      const { registry } = await gatesAt(desk);
      for (const key of keys) definitionOf(registry, key);
      const by = await authorAt(desk);
      return async (current) => {
        refuseEnded(current);
        const added = keys.filter((key) => !current.issue.gates.includes(key));
        if (added.length === 0) return null;
        const seen = await readResults(reader, current);
        const resets = resetLines(reader.sources.platform, seen, added, by);
        const gates = [...current.issue.gates, ...added];
        refuseTooMany(gates);
        const payload = { issue_id: id, gates: added };
        return withGates(current, gates, seen, [{ type: "gate.added", payload }], resets);
      };
    });
  },

  /** Takes one off an issue; before it is passed only for those who may pass it. If it was the last one to pass, the issue is done. */
  remove(desk: Desk, request: GateRequest): Promise<ChangedIssue> {
    const { reader, workspace } = desk;
    const key = request.gate;
    const plan = async (id: Ulid) => async (current: FoundIssue) => {
      refuseEnded(current);
      gateOf(current, key);
      const gates = current.issue.gates.filter((one) => one !== key);
      const seen = await readResults(reader, current);
      if (workspace !== null) {
        const { decider, passBy } = await deciding(workspace);
        refuseTakingOff(current, key, seen, decider, passBy);
      }
      const payload = { issue_id: id, gate: key };
      return withGates(current, gates, seen, [{ type: "gate.removed", payload }]);
    };
    return changeIssue(desk, request, plan, { proof: () => resultOptions(desk, request) });
  },

  /** For those whom `gates.pass_by` names; with the last one, an issue that is gated is done. */
  pass(desk: Desk, request: DecideRequest): Promise<Decided> {
    return decide(desk, request, "passed");
  },

  fail(desk: Desk, request: DecideRequest): Promise<Decided> {
    return decide(desk, request, "failed");
  },

  /** Runs automated gates in this worktree, and writes down how they ended. Each result is a write of its own. */
  async run(desk: RunDesk, request: RunRequest): Promise<Ran> {
    const { reader, workspace, commands } = desk;
    const known = await knownOf(desk, request.issue);
    const found = await reader.get(known.id);
    refuseEnded(found);
    const gates = await gatesToRun(desk, found, known.registry, request);
    for (const one of gates) refuseUntrusted(reader.sources.platform.digest, known.trust, one);
    const options = await resultOptions(desk, { ...request, requestId: undefined });
    const gateDesk = { workspace, reader, writer: await writerAt(desk), commands };
    const runs: RanGate[] = [];
    for (const one of gates) {
      const onStart = () => request.onStart?.(one);
      const ran = await runAndRecord(gateDesk, found, one, options, { onStart });
      request.onEnd?.(ran);
      workspace.warnings.push(...ran.outcome.warnings);
      runs.push(ran);
    }
    const last = runs.at(-1)?.outcome;
    const counted = await asCounted(desk, last?.found ?? found);
    const results = last?.results ?? (await readResults(reader, counted));
    const keys = runs.map((ran) => ran.gate.key);
    return { ...standingOf(desk, known, counted, keys, results), runs };
  },
};

/** What can be known of an issue's gates before one of them is written about. */
interface KnownOfIssue extends Known {
  readonly id: Ulid;
  readonly shortId: string;
}

async function knownOf(desk: Desk, typed: string): Promise<KnownOfIssue> {
  const { reader } = desk;
  const id = await meantId(reader, typed);
  return { ...(await gatesAt(desk)), id, shortId: shortId(id, await reader.ids()) };
}

function standingOf(
  desk: Desk,
  known: KnownOfIssue,
  found: FoundIssue,
  keys: readonly string[],
  results: GateResults,
): IssueGates {
  const gates = [...new Set(keys)].map((key) => {
    const definition = known.registry.gates.get(key);
    return {
      key,
      status: gateStatus(results, key),
      definition: definition === undefined ? null : definedGate(desk, known, definition),
      results: results.standing.get(key) ?? [],
    };
  });
  return { found, shortId: known.shortId, gates, pending: pendingAmong(found.issue.gates, results) };
}

async function decide(desk: Desk, request: DecideRequest, status: "passed" | "failed"): Promise<Decided> {
  const { reader, workspace } = desk;
  const { gate: key, reason = null } = request;
  orThrow(checkText(reason, "reason"));
  // Before the write: what is done must not be said to have failed because of what is read afterwards.
  const known = await knownOf(desk, request.issue);
  const { id, registry } = known;
  const found = await reader.get(id);
  gateOf(found, key);
  const options = await resultOptions(desk, request);
  // With a request id it may be the very call that has ended the issue; the write finds out.
  if (options.requestId == null) refuseEnded(found);
  if (status === "passed" && workspace !== null) {
    const { decider, passBy } = await deciding(workspace);
    refusePass(found, key, registry.gates.get(key)?.kind ?? null, decider, passBy);
  }
  const by = await authorAt(desk);
  const state = await checkedState(reader);
  const given = { gate: key, status, kind: "manual", by, reason, ...state } as const;
  const outcome = await recordResult(reader, await writerAt(desk), { id }, options, given);
  const { changed, replayed, results, warnings } = outcome;
  workspace?.warnings.push(...warnings);
  const counted = await asCounted(desk, outcome.found);
  return { ...standingOf(desk, known, counted, [key], results), changed, replayed };
}

/** Persons, CI and administrators need no claim for a gate's result; an agent does, as configured. */
async function resultOptions({ workspace }: Desk, request: HolderRequest): Promise<WriteOptions> {
  if (workspace === null) return {};
  const { decider, passBy } = await deciding(workspace);
  const isFree = agentType(decider.agentId) !== "agent" || mayPass(passBy, decider);
  return { ...(await proofOf(workspace, request)), ...(isFree ? { enforcement: "off" } : {}) };
}

/** Who asks, and who may decide. */
async function deciding(
  workspace: Workspace,
): Promise<{ readonly decider: Decider; readonly passBy: readonly string[] }> {
  const { agentId, harness } = await workspace.agent();
  return {
    decider: { agentId, isInHarness: harness !== null },
    passBy: workspace.config.values["gates.pass_by"],
  };
}

async function gatesToRun(
  { reader }: Desk,
  found: FoundIssue,
  registry: Registry,
  { gate: key, all = false }: RunRequest,
): Promise<readonly GateDefinition[]> {
  if (key !== undefined) {
    const one = definitionOf(registry, gateOf(found, key));
    if (one.kind === "automated") return [one];
    throw new CotenantError("E_USAGE", `gate ${key} is manual: there is nothing to run`, {
      hint: `somebody says so: cotenant gate pass ${found.id} ${key}`,
      data: { gate: key },
    });
  }
  const { defined, due } = await automatedGates(reader, found, registry, { all });
  if (defined > 0) return due;
  throw new CotenantError("E_NOT_FOUND", `issue ${found.id} has no automated gate that is defined here`, {
    hint: "'cotenant gate list' shows what there is; 'cotenant gate add' gives an issue one",
    data: { id: found.id },
  });
}
