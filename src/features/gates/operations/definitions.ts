import { NO_TRUST, readTrust, type Trust } from "../../../config/trust";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError, choiceOf, fileFailure } from "../../../errors/cotenant-error";
import { prepareDataDirectory, refuseLink } from "../../../identity/worktree-file";
import { stageFile } from "../../../platform/replace-file";
import type { Desk, RepositoryDesk } from "../../issues/desk";
import { shortTitle } from "../../issues/fields";
import { isTerminal } from "../../issues/model";
import { isFound } from "../../issues/resolve";
import { changeForAll } from "../../setup/shared-change";
import { choosePreset, lookAround, PRESETS, type Preset } from "../presets";
import {
  commandProblem,
  DEFAULT_TIMEOUT_SECS,
  definitionOf,
  describeGate,
  type GateDefinition,
  isTimeout,
  MAX_GATE_TITLE,
  MAX_TIMEOUT_SECS,
  parseGateKey,
  REGISTRY,
  type Registry,
  readRegistry,
  registryWith,
} from "../registry";
import { isTrusted, trustGates } from "../trust";

export interface DefinedGate extends GateDefinition {
  /** Whether this clone allows its command; null where it has none. */
  readonly trusted: boolean | null;
}

export interface DefineRequest {
  /** Default: the preset's name. */
  readonly key?: string | undefined;
  readonly title?: string | undefined;
  /** What a shell runs; without one, somebody has to say that it is passed. */
  readonly command?: string | undefined;
  readonly timeoutSecs?: number | undefined;
  /** Where it runs, from the worktree's root. */
  readonly cwd?: string | undefined;
  /** Filled in by what this repository has. */
  readonly preset?: string | undefined;
  /** Instead of the gate that has this key now. */
  readonly replace?: boolean;
}

export interface Defined {
  readonly gate: DefinedGate;
  readonly changed: boolean;
  /** Why the preset has chosen this command; null where it has not. */
  readonly because: string | null;
  /** Whether the caller's clone has come to trust its command with this. */
  readonly isNewlyTrusted: boolean;
}

export const definitions = {
  async define(desk: RepositoryDesk, request: DefineRequest): Promise<Defined> {
    const { workspace } = desk;
    const { platform } = workspace.surroundings;
    const { worktreeRoot } = workspace.repository;
    const { agentId } = await workspace.agent();
    const wanted = await wantedGate(workspace, request);
    if (wanted.gate.cwd !== null) {
      const { isDirectory } = await workspace.path(`${worktreeRoot}/${wanted.gate.cwd}`);
      if (isDirectory === false)
        throw new CotenantError("E_USAGE", "--cwd is a file, not a directory", { hint: "name a directory" });
    }
    const at = new Date(platform.clock.wallMs()).toISOString();
    const made: GateDefinition = { ...wanted.gate, defined_at: at, defined_by: agentId };
    const changed = await changeRegistry(workspace, (registry) => {
      const before = registry.gates.get(made.key);
      if (before !== undefined && isSame(before, made)) return null;
      if (before !== undefined && request.replace !== true) throw definedAlready(before);
      const payload = { gate: made.key, command: made.command };
      return { text: registryWith(registry, made.key, made), payload };
    });
    const trusted = await trustGates(workspace, made.command === null ? [] : [made]);
    const known = await gatesAt(desk);
    const now = definedGate(desk, known, known.registry.gates.get(made.key) ?? made);
    return { gate: now, changed, because: wanted.because, isNewlyTrusted: trusted.length > 0 };
  },

  /** Takes a definition away. Answers how many open issues have it still: they must pass it, or have it taken off. */
  async undefine(desk: RepositoryDesk, { gate: key }: { readonly gate: string }): Promise<number> {
    await changeRegistry(desk.workspace, (registry) => {
      // One that is broken, or there twice, can be removed as well.
      if (!registry.problems.some((problem) => problem.key === key)) definitionOf(registry, key);
      return { text: registryWith(registry, key, null), payload: { gate: key, removed: true } };
    });
    const { reader } = desk;
    const found = [...(await reader.findAll(await reader.ids())).values()].filter(isFound);
    return found.filter(
      ({ state, issue, isDeleted }) => !isDeleted && issue.gates.includes(key) && !isTerminal({ state }),
    ).length;
  },

  /** The gates that are defined here. */
  async list(desk: Desk): Promise<readonly DefinedGate[]> {
    const known = await gatesAt(desk);
    for (const { message } of known.registry.problems)
      desk.workspace?.warnings.push(`.cotenant/gates/registry.json: ${message}`);
    return [...known.registry.gates.values()].map((one) => definedGate(desk, known, one));
  },

  async show(desk: Desk, { gate: key }: { readonly gate: string }): Promise<DefinedGate> {
    const known = await gatesAt(desk);
    return definedGate(desk, known, definitionOf(known.registry, key));
  },
};

export interface Known {
  readonly registry: Registry;
  readonly trust: Trust;
}

/** The gates that are defined here, and which of their commands this clone trusts. */
export async function gatesAt({ reader, workspace }: Desk): Promise<Known> {
  const { platform, here } = reader.sources;
  const registry = await readRegistry(platform, here.root);
  const trust = workspace === null ? NO_TRUST : await readTrust(platform, workspace.repository.controlDir);
  return { registry, trust };
}

export function definedGate({ reader }: Desk, { trust }: Known, one: GateDefinition): DefinedGate {
  return { ...one, trusted: isTrusted(reader.sources.platform.digest, trust, one) };
}

/** Changes the registry under `scope:gates`. `plan` is asked in the critical section; null where nothing changes. */
async function changeRegistry(
  workspace: Workspace,
  plan: (
    registry: Registry,
  ) => { readonly text: string; readonly payload: Readonly<Record<string, unknown>> } | null,
): Promise<boolean> {
  const { platform } = workspace.surroundings;
  const { worktreeRoot } = workspace.repository;
  const change = async () => {
    const wanted = plan(await readRegistry(platform, worktreeRoot));
    if (wanted === null) return { answer: false, stage: null, payload: {} };
    const modes = await prepareDataDirectory(platform, worktreeRoot);
    const folder = `${worktreeRoot}/.cotenant/gates`;
    await platform.files.makeDirectory(folder, 0o755);
    await refuseLink(platform, folder, "directory");
    await refuseLink(platform, `${worktreeRoot}/${REGISTRY}`, "file");
    const stage = () => stageFile(platform, `${worktreeRoot}/${REGISTRY}`, wanted.text, modes.file);
    return { answer: true, stage, payload: { scope: "gates", ...wanted.payload } };
  };
  return changeForAll(workspace, "gates", change).catch((error: unknown) => {
    throw fileFailure(error, "changing the gates", worktreeRoot);
  });
}

/** All that can be wrong with the request, before anything is written. */
async function wantedGate(
  workspace: Workspace,
  { key: typed, title: given, command, timeoutSecs, cwd, preset: name }: DefineRequest,
) {
  const preset = name === undefined ? null : await presetOf(workspace, name, command !== undefined);
  const named = typed ?? name;
  if (named === undefined)
    throw new CotenantError("E_USAGE", "a gate needs a key", {
      hint: `write one, such as tests, or take a preset: --preset ${PRESETS.join("|")}`,
    });
  const key = parseGateKey(named);
  const title = shortTitle(given ?? preset?.title ?? key, MAX_GATE_TITLE, "a gate");
  const line = command ?? preset?.command ?? null;
  const because = command === undefined ? (preset?.because ?? null) : null;
  if (line === null) {
    if (timeoutSecs !== undefined || cwd !== undefined)
      throw new CotenantError("E_USAGE", "--timeout and --cwd are about a command, and there is none", {
        hint: "add --command <command>",
      });
    return {
      gate: { key, title, kind: "manual", command: null, timeout_secs: null, cwd: null } as const,
      because,
    };
  }
  const wrong = commandProblem(line);
  if (wrong !== null)
    throw new CotenantError("E_USAGE", `the gate ${wrong}`, { hint: "write one line, as for a shell" });
  const secs = timeoutSecs ?? DEFAULT_TIMEOUT_SECS;
  if (!isTimeout(secs))
    throw new CotenantError("E_LIMIT", `--timeout ${secs} is not within 1 and ${MAX_TIMEOUT_SECS} seconds`);
  const directory = (cwd ?? ".").replace(/^(?:\.\/)+(?=.)/, "").replace(/(?<=.)\/+$/, "") || ".";
  const automated = {
    key,
    title,
    kind: "automated",
    command: line,
    timeout_secs: secs,
    cwd: directory,
  } as const;
  return { gate: automated, because };
}

async function presetOf(workspace: Workspace, name: string, hasCommand: boolean): Promise<Preset | null> {
  const preset = choiceOf("--preset", name, PRESETS);
  const { platform } = workspace.surroundings;
  const chosen = choosePreset(preset, await lookAround(platform, workspace.repository.worktreeRoot));
  if (chosen !== null || hasCommand) return chosen;
  throw new CotenantError("E_NOT_FOUND", `nothing in this repository says how "${name}" is checked`, {
    hint: `say it yourself: cotenant gate define ${name} --command <command>`,
    data: { preset: name },
  });
}

function isSame(a: GateDefinition, b: GateDefinition): boolean {
  const fields = ["title", "kind", "command", "timeout_secs", "cwd"] as const;
  return fields.every((field) => a[field] === b[field]);
}

function definedAlready(one: GateDefinition): CotenantError {
  return new CotenantError("E_USAGE", `there is a gate "${one.key}" already: ${describeGate(one)}`, {
    hint: "choose another key, or add --replace",
    data: { gate: one.key },
  });
}
