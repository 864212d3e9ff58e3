import type { Command, Parsed } from "../../../cli/grammar/command";
import { CotenantError, fileFailure } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { openDesk } from "../../issues/commands/issues";
import { trustGates } from "../../setup/trust";
import { choosePreset, lookAround, PRESETS, type PresetName } from "../presets";
import {
  commandProblem,
  DEFAULT_TIMEOUT_SECS,
  type GateDefinition,
  isTimeout,
  MAX_GATE_TITLE,
  MAX_TIMEOUT_SECS,
  parseGateKey,
  readRegistry,
  registryWith,
} from "../registry";
import { isTrusted } from "../trust";
import { changeRegistry } from "./gate-registry";
import { definitionJson, gatesAt } from "./gates";

export const command: Command = {
  usage:
    "gate define [<key>] [--title <text>] [--command <line> [--timeout <secs>] [--cwd <dir>]] [--preset <name>] [--replace]",
  about:
    "Defines a gate that issues can have. With a command it is automated, and 'gate run' runs it; without one\nsomebody has to say that it is passed. A preset is filled in by what this repository has. It goes to\n.cotenant/gates/registry.json, under the lease scope:gates.",
  flags: {
    title: { value: "<text>", meaning: "what has to be so, in a few words" },
    command: {
      value: "<line>",
      meaning: "what a shell runs in the worktree's root; it passes by ending with 0",
    },
    timeout: { value: "<secs>", meaning: `how long it may take (default ${DEFAULT_TIMEOUT_SECS})` },
    cwd: {
      value: "<dir>",
      completes: "directory",
      meaning: "where it runs instead, from the worktree's root",
    },
    preset: { value: "<name>", choices: PRESETS, meaning: `one of ${PRESETS.join(", ")}` },
    replace: { meaning: "instead of the gate that has this key now" },
  },
  examples: [
    'cotenant gate define tests --command "npm test" --timeout 900',
    'cotenant gate define review --title "Somebody else has read it"',
    "cotenant gate define --preset review --replace",
  ],
  words: { min: 0, max: 1 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const { platform } = workspace.surroundings;
    const { worktreeRoot } = workspace.repository;
    const { agentId } = await workspace.agent();
    const wanted = await wantedGate(parsed, async (name) =>
      choosePreset(name, await lookAround(platform, worktreeRoot)),
    );
    if (wanted.gate.cwd !== null) await refuseOutside(workspace.path(`${worktreeRoot}/${wanted.gate.cwd}`));
    const at = new Date(platform.clock.wallMs()).toISOString();
    const gate: GateDefinition = { ...wanted.gate, defined_at: at, defined_by: agentId };
    const changed = await changeRegistry(workspace, async () => {
      const registry = await readRegistry(platform, worktreeRoot);
      const before = registry.gates.get(gate.key);
      if (before !== undefined && isSame(before, gate)) return null;
      if (before !== undefined && !parsed.has("replace")) throw definedAlready(before);
      return {
        text: registryWith(registry, gate.key, gate),
        payload: { gate: gate.key, command: gate.command },
      };
    }).catch((error: unknown) => {
      throw fileFailure(error, "changing the gates", worktreeRoot);
    });
    const trusted = await trustGates(workspace, gate.command === null ? [] : [gate]);
    const desk = await openDesk(context);
    const { registry, trust } = await gatesAt(desk);
    const now = registry.gates.get(gate.key) ?? gate;
    const waits = isTrusted(platform.digest, trust, now) === false;
    const lines = [
      `${gate.key}: ${describe(now)}${changed ? "" : " (it was so already)"}`,
      ...(wanted.because === null ? [] : [`  chosen because ${wanted.because}`]),
      ...(trusted.length > 0
        ? ["  this clone trusts its command now; other clones run 'cotenant trust'"]
        : []),
      ...(waits ? ["  its command does not run until a person runs 'cotenant trust'"] : []),
      ...(changed ? [`  next: cotenant gate add <issue> ${gate.key}`] : []),
    ];
    return {
      data: { gate: definitionJson(desk, trust, now), changed, because: wanted.because },
      text: context.quiet ? "" : lines.join("\n"),
    };
  },
};

type Wanted = Omit<GateDefinition, "defined_at" | "defined_by">;

/** All that can be wrong with the words, before anything is written. */
async function wantedGate(
  parsed: Parsed,
  choose: (name: PresetName) => Promise<ReturnType<typeof choosePreset>>,
): Promise<{ gate: Wanted; because: string | null }> {
  const name = parsed.text("preset");
  const preset = name === undefined ? null : await presetOf(name, parsed, choose);
  const typed = parsed.words[0] ?? name;
  if (typed === undefined)
    throw new CotenantError("E_USAGE", "a gate needs a key", {
      hint: `write one, such as tests, or take a preset: --preset ${PRESETS.join("|")}`,
    });
  const key = parseGateKey(typed);
  const title = titleOf(parsed.text("title") ?? preset?.title ?? key);
  const line = parsed.text("command") ?? preset?.command ?? null;
  const timeout = parsed.whole("timeout");
  const cwd = parsed.text("cwd");
  if (line === null) {
    if (timeout !== undefined || cwd !== undefined)
      throw new CotenantError("E_USAGE", "--timeout and --cwd are about a command, and there is none", {
        hint: "add --command <command>",
      });
    return {
      gate: { key, title, kind: "manual", command: null, timeout_secs: null, cwd: null },
      because: preset?.because ?? null,
    };
  }
  const wrong = commandProblem(line);
  if (wrong !== null)
    throw new CotenantError("E_USAGE", `the gate ${wrong}`, { hint: "write one line, as for a shell" });
  const secs = timeout ?? DEFAULT_TIMEOUT_SECS;
  if (!isTimeout(secs))
    throw new CotenantError("E_LIMIT", `--timeout ${secs} is not within 1 and ${MAX_TIMEOUT_SECS} seconds`);
  const directory = (cwd ?? ".").replace(/^(?:\.\/)+(?=.)/, "").replace(/(?<=.)\/+$/, "") || ".";
  return {
    gate: { key, title, kind: "automated", command: line, timeout_secs: secs, cwd: directory },
    because: parsed.text("command") === undefined ? (preset?.because ?? null) : null,
  };
}

async function presetOf(
  name: string,
  parsed: Parsed,
  choose: (name: PresetName) => Promise<ReturnType<typeof choosePreset>>,
): Promise<ReturnType<typeof choosePreset>> {
  if (!PRESETS.includes(name as PresetName))
    throw new CotenantError("E_USAGE", `--preset cannot be "${printable(name)}"`, {
      hint: `use one of ${PRESETS.join(", ")}`,
    });
  const chosen = await choose(name as PresetName);
  if (chosen !== null || parsed.text("command") !== undefined) return chosen;
  throw new CotenantError("E_NOT_FOUND", `nothing in this repository says how "${name}" is checked`, {
    hint: `say it yourself: cotenant gate define ${name} --command <command>`,
    data: { preset: name },
  });
}

function titleOf(text: string): string {
  const title = text.trim();
  if (title.length > MAX_GATE_TITLE)
    throw new CotenantError("E_LIMIT", `a gate's title has at most ${MAX_GATE_TITLE} characters`);
  if (/[\p{Cc}\u2028\u2029]/u.test(title))
    throw new CotenantError("E_USAGE", "the title contains control characters", { hint: "leave them out" });
  return title;
}

async function refuseOutside(path: Promise<{ readonly isDirectory: boolean | null }>): Promise<void> {
  const { isDirectory } = await path;
  if (isDirectory === false)
    throw new CotenantError("E_USAGE", "--cwd is a file, not a directory", { hint: "name a directory" });
}

function isSame(a: GateDefinition, b: GateDefinition): boolean {
  const fields = ["title", "kind", "command", "timeout_secs", "cwd"] as const;
  return fields.every((field) => a[field] === b[field]);
}

function definedAlready(gate: GateDefinition): CotenantError {
  return new CotenantError("E_USAGE", `there is a gate "${gate.key}" already: ${describe(gate)}`, {
    hint: "choose another key, or add --replace",
    data: { gate: gate.key },
  });
}

function describe({ kind, title, command, timeout_secs, cwd }: GateDefinition): string {
  const name = printable(title, 200);
  if (kind === "manual") return `manual; ${name}`;
  const where = cwd === "." ? "" : ` in ${printable(cwd ?? "", 200)}`;
  return `automated; ${name}; runs "${printable(command ?? "", 500)}"${where}, for ${timeout_secs} s at most`;
}
