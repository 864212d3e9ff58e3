import { isBuiltin } from "node:module";
import { posix } from "node:path";
import { describe, expect, it } from "vitest";
import { ambientUses, filesBelow, modulesOf, type SourceFile, tokensOf } from "./source";

interface Layer {
  /** Layers it may import besides itself. */
  readonly may: readonly string[];
  /** Packages it may import; "*" for any. */
  readonly packages?: readonly string[];
  /** May touch Node, the environment, the terminal, the clock and chance. */
  readonly world?: true;
  readonly because: string;
}

const BASE = ["kernel", "errors", "platform", "codec"];
const BELOW_FEATURES = [...BASE, "config", "identity", "git", "store", "coordinator"];
/** What agents work on, and what has to hold before it is done: other features are about it. */
const WORK = ["features/issues", "features/gates"];
const LIBRARY = [...BELOW_FEATURES, "features/*", "operations", "platform/node"];

/** Records are written down once, as schemas. */
const SCHEMAS = ["valibot"];

const FEATURE: Layer = {
  may: [...BELOW_FEATURES, ...WORK],
  packages: SCHEMAS,
  because:
    "a feature stands on the coordinator and on issues, and on other features only where a row says so",
};

/** Which folder may import which: imports point downwards only. */
const LAYERS: Readonly<Record<string, Layer>> = {
  kernel: { may: [], because: "it is pure: it runs in the simulator, a model checker or a browser as it is" },
  errors: { may: ["kernel"], because: "a kernel refusal becomes an error here, and only here" },
  codec: {
    may: ["kernel"],
    packages: ["valibot"],
    because: "what files and messages say becomes values here, whoever they are for",
  },
  platform: {
    may: ["kernel", "errors"],
    because: "interfaces; who imports them must not get Node or the simulator with them",
  },
  "platform/node": {
    may: BASE,
    packages: ["fs-native-extensions"],
    world: true,
    because: "the real machine: the only place below the edges that touches it",
  },
  config: {
    may: BASE,
    packages: ["smol-toml", "toml-eslint-parser"],
    because: "settings are needed before there is a store",
  },
  identity: {
    may: [...BASE, "config"],
    because: "who is asking is known before anything is asked; agent.toml may say it",
  },
  git: {
    may: [...BASE, "identity"],
    because: "Git's objects and refs, for whatever publishes them: it knows of no leases",
  },
  store: { may: BASE, because: "it keeps what the kernel decides, for whoever asks" },
  coordinator: {
    may: [...BASE, "platform/node", "config", "identity", "store"],
    because: "the contract and its engines; engines differ in where they keep state, not in who asks",
  },

  "features/issues": {
    may: [...BASE, "config", "identity", "store", "coordinator", "features/gates"],
    because: "the data plane stands on leases",
  },
  "features/gates": {
    may: [...BASE, "config", "identity", "store", "coordinator", "features/issues"],
    packages: SCHEMAS,
    because: "gates are kept with the issues that have to pass them",
  },
  "features/claims": FEATURE,
  "features/locks": FEATURE,
  "features/installer": {
    may: [...BASE, "identity"],
    because: "files of others get a part of ours, whatever they are: hooks and settings know what is theirs",
  },
  "features/hooks": {
    may: [...FEATURE.may, "features/installer"],
    because: "rules for commits and pushes, and how Git comes to ask for them: by files of others",
  },
  "features/worktrees": FEATURE,
  "features/guard": {
    ...FEATURE,
    packages: [...SCHEMAS, "unbash"],
    because: "a feature stands on the coordinator; shell commands are read by a parser, not by patterns",
  },
  "features/harnesses": {
    may: [...FEATURE.may, "features/guard", "features/installer"],
    packages: ["jsonc-parser", "smol-toml"],
    because: "it puts the guard's command lines into settings of others, and needs nothing else of it",
  },
  "features/snapshots": {
    may: [...FEATURE.may, "features/worktrees"],
    packages: SCHEMAS,
    because: "a snapshot is of a worktree, taken under its writer lock, and comes back as one",
  },
  "features/publish": {
    may: [...FEATURE.may, "features/hooks"],
    packages: [
      ...SCHEMAS,
      "@secretlint/core",
      "@secretlint/profiler",
      "@secretlint/secretlint-rule-preset-recommend",
    ],
    because: "a commit is a commit: what it may change is judged by the rules that hooks have",
  },
  "features/ledger": {
    may: [...FEATURE.may, "features/hooks"],
    packages: SCHEMAS,
    because: "what it commits names the claims behind it, in the words that hooks read",
  },
  "features/land": {
    may: [...FEATURE.may, "features/hooks", "features/publish", "features/worktrees"],
    packages: SCHEMAS,
    because: "a landing moves a branch as a publish does, by the same rules, and checks it in worktrees",
  },
  "features/dispatch": {
    may: [
      ...FEATURE.may,
      ...[
        "exec",
        "harnesses",
        "hooks",
        "installer",
        "land",
        "ledger",
        "publish",
        "snapshots",
        "worktrees",
      ].map((name) => `features/${name}`),
      "operations",
    ],
    packages: SCHEMAS,
    because:
      "it has done for an issue, from its claim to its landing, what a person would do with the features",
  },
  "features/setup": {
    may: [...BELOW_FEATURES, "features/*"],
    because: "it prepares a repository for everything, and undoes all of it",
  },
  "features/exec": {
    may: ["errors", "platform", "identity"],
    because: "a table of tools and their variables, and the places that they name",
  },
  "features/watch": {
    may: [...BELOW_FEATURES, "features/*"],
    because: "it tells what of anything needs a person; only operations and the edges look at it",
  },
  "features/doctor": {
    may: [...BELOW_FEATURES, "features/*"],
    because: "it looks at everything and changes nothing; only the edges look at it",
  },
  operations: {
    may: [...BELOW_FEATURES, "features/*", "operations"],
    because:
      "what a feature does, with all its rules, for the command line and for programs: it may need every other feature",
  },
  // What a harness or Git starts, and has no time for more.
  "features/guard/entry": {
    may: [
      ...BELOW_FEATURES,
      "features/*",
      "operations",
      "platform/node",
      "daemon",
      "commands",
      "cli/grammar",
      "cli/terminal",
      ".",
    ],
    world: true,
    because: "the guard on the real machine, for whoever answers a harness: the program and the daemon",
  },
  "features/hooks/answers": {
    may: [...FEATURE.may, "features/hooks", "features/ledger", "features/guard", "features/guard/entry"],
    because:
      "what Git is answered rests on the rules, on claims of other machines, and on what the guard has seen",
  },
  "features/hooks/entry": {
    may: ["kernel", "platform/node", "features/hooks"],
    world: true,
    because: "it says within a millisecond that a hook has nothing to do",
  },
  "features/harnesses/real-canary": {
    may: [...BASE, "platform/node", "identity", "features/guard", "features/harnesses"],
    world: true,
    because:
      "an edge: it starts programs of others, serves them a model and kills them; cotenant is one of them",
  },

  ".": {
    may: [
      ...[...LIBRARY, "daemon"],
      ...["features/guard/entry", "features/hooks/answers", "features/harnesses/real-canary"],
    ],
    world: true,
    because: "the library's front door wires the real machine to operations, or to the daemon in front of it",
  },
  mcp: { may: [...LIBRARY, "."], packages: ["*"], because: "an edge over the library" },
  daemon: {
    may: [...LIBRARY, "features/guard/entry"],
    packages: ["valibot"],
    world: true,
    because:
      "an edge: it owns its process; and the client that asks it, which programs and the library share",
  },
  server: {
    may: [...LIBRARY, ".", "daemon"],
    packages: ["*"],
    world: true,
    because: "an edge: it owns its server",
  },
  demo: {
    may: [...LIBRARY, ".", "testing/checker", "testing/workload", "testing/simulator"],
    world: true,
    because: "an edge: it starts, stops and kills real processes over the library, and needs nothing else",
  },
  "cli/grammar": {
    may: ["kernel", "errors", "config", "coordinator", "cli/terminal"],
    world: true,
    because: "how command lines are written and read, whatever they are about",
  },
  "cli/terminal": {
    may: [...BASE, "coordinator", "store", "cli/grammar"],
    world: true,
    because: "how anything is shown, whatever it is",
  },
  commands: {
    may: [
      ...[...LIBRARY, ".", "commands", "cli/grammar", "cli/terminal", "daemon", "demo"],
      ...["features/guard/entry", "features/hooks/answers", "features/hooks/entry"],
      "features/harnesses/real-canary",
    ],
    world: true,
    because: "words to a request, and a value to text: a feature's part of the command line",
  },
  cli: {
    may: [...LIBRARY, ".", "commands", "cli/grammar", "cli/terminal", "mcp", "daemon", "server"],
    packages: ["*"],
    world: true,
    because: "the outermost edge; nothing imports it, so a command can go without a trace",
  },

  "testing/simulator": {
    may: BASE,
    because: "a run must be repeatable from its seed, so it may not see the real machine",
  },
  "testing/workload": {
    may: [...BASE, "coordinator", "testing/checker"],
    world: true,
    because: "what processes do that are checked, in the demo as in proofs",
  },
  "testing/checker": {
    may: [],
    world: true,
    because: "it shares nothing with what it checks, so that a mistake cannot hide itself",
  },
};

/** A simulated process may be called `process` too, and have a `pid`; it has none of these. */
const ONLY_NODES = new Set([
  "argv",
  "cwd",
  "env",
  "exit",
  "hrtime",
  "nextTick",
  "on",
  "stderr",
  "stdin",
  "stdout",
]);

/** Names through which code reaches the machine past the platform's interfaces. */
function isWorld(name: string, member: string, isOwn: boolean): boolean {
  if (name === "process" && isOwn) return ONLY_NODES.has(member);
  if (["process", "console", "performance", "require", "globalThis"].includes(name)) return true;
  if (["setTimeout", "setInterval", "setImmediate", "fetch"].includes(name)) return member === "";
  return (name === "Date" && member === "now") || (name === "Math" && member === "random");
}

/** Folders of a feature, or of an edge, that stand apart from the rest of it. */
const APART =
  /^(?:features\/(?:guard\/entry|hooks\/(?:answers|entry))|features\/harnesses\/real-canary|cli\/(?:grammar|terminal))\//;

const OPERATIONS = /^features\/[^/]+\/operations(?:\.ts|\/|$)/;

/** The layer of a file: its folder, with what stands apart told from it. */
function layerOf(path: string): string {
  if (path.startsWith("testing/")) return path.split("/").slice(0, 2).join("/");
  const inside = path.replace(/^src\/?/, "");
  if (/^(?:features\/[^/]+|daemon|demo)\/commands\//.test(inside)) return "commands";
  if (OPERATIONS.test(inside)) return "operations";
  const apart = APART.exec(inside);
  if (apart !== null) return apart[0].slice(0, -1);
  const [folder = "", ...rest] = inside.split("/");
  // A folder by its bare name means its index; any other bare name is a file of src itself.
  if (rest.length === 0) return Object.hasOwn(LAYERS, folder) ? folder : ".";
  if (folder === "features") return `features/${rest[0]}`;
  if (folder !== "platform") return folder;
  const isNodes = rest.map((part) => part.replace(/\.ts$/, "")).some((part) => /(?:^|-)node$/.test(part));
  return isNodes ? "platform/node" : "platform";
}

function mayImport(name: string, { may }: Layer, to: string): boolean {
  return to === name || may.includes(to) || (/^features\/[^/]+$/.test(to) && may.includes("features/*"));
}

function violationsIn({ path, text }: SourceFile): string[] {
  const name = layerOf(path);
  const layer = LAYERS[name];
  if (layer === undefined) return [`${path}: no rule for ${name}: add a row to LAYERS with the reason`];
  const tokens = tokensOf(text);
  const imports = modulesOf(tokens).flatMap(({ name: module, line }) => {
    const wrong = importProblem(path, name, layer, module);
    return wrong === null ? [] : [`${path}:${line}: ${wrong} (${layer.because})`];
  });
  if (layer.world) return imports;
  const uses = ambientUses(tokens, isWorld).map(
    (use) =>
      `${path}:${use.line}: ${name} may not use ${use.name}: go through the platform (${layer.because})`,
  );
  return [...imports, ...uses];
}

function importProblem(path: string, name: string, layer: Layer, module: string): string | null {
  if (module.startsWith(".")) {
    const target = posix.join(posix.dirname(path), module);
    if (!/^(?:src|testing)(?:\/|$)/.test(target))
      return `${name} may not import from outside src and testing: ${module}`;
    const to = layerOf(target);
    return mayImport(name, layer, to) ? null : `${name} may not import ${to}: ${module}`;
  }
  if (isBuiltin(module)) {
    if (!layer.world) return `${name} may not import ${module}`;
    return module.startsWith("node:") ? null : `write node:${module}`;
  }
  const allowed = layer.packages ?? [];
  return allowed.includes("*") || allowed.includes(module)
    ? null
    : `${name} may not import the package ${module}`;
}

describe("imports", () => {
  it("point downwards only, and only the edges and the real platform touch the machine", () => {
    const files = [...filesBelow("src"), ...filesBelow("testing")].filter(({ path }) => path.endsWith(".ts"));
    expect(files.length).toBeGreaterThan(10);
    expect(files.flatMap(violationsIn)).toEqual([]);
  });

  it.each([
    ["src/kernel/a.ts", 'import type { X } from "../errors/registry";'],
    ["src/kernel/a.ts", 'export * from "../platform/platform";'],
    ["src/kernel/a.ts", 'type X = import("../store/log").X;'],
    ["src/kernel/a.ts", "const now = Date.now();"],
    ["src/kernel/a.ts", "const a = Math.random();"],
    ["src/kernel/a.ts", 'import { parse } from "smol-toml";'],
    ["src/store/a.ts", 'import { readFileSync } from "node:fs";'],
    ["src/store/a.ts", 'const fs = await import("node:fs");'],
    ["src/store/a.ts", 'const fs = require("fs");'],
    ["src/store/a.ts", 'import { nodePlatform } from "../platform/node";'],
    ["src/store/a.ts", 'import { nodePlatform } from "../platform/node/platform";'],
    ["src/store/a.ts", 'import { simulate } from "../../testing/simulator/world";'],
    ["src/store/a.ts", "const text = `$" + "{process.env.HOME}`;"],
    ["src/store/a.ts", 'if (a / b > 1) console.log("x");'],
    ["src/store/a.ts", "globalThis.process.exit(1);"],
    ["testing/simulator/a.ts", "for (const process of all) process.env.HOME = 1;"],
    ["testing/simulator/a.ts", "const a = process.pid;"],
    ["src/store/a.ts", "setTimeout(() => {}, 1);"],
    ["src/store/a.ts", 'import { open } from "../coordinator";'],
    ["src/store/a.ts", 'import { open } from "..";'],
    ["src/store/a.ts", 'import "../../scripts/build.mjs";'],
    ["testing/simulator/a.ts", "const a = performance.now();"],
    ["src/platform/files.ts", 'import { x } from "./files-node";'],
    ["src/coordinator/a.ts", 'import { main } from "../cli/main";'],
    ["src/identity/a.ts", 'import { x } from "../store/log";'],
    ["src/index.ts", 'import { main } from "./cli/main";'],
    ["src/daemon/a.ts", 'import { main } from "../cli/main";'],
    ["src/cli/a.ts", 'import fs from "fs";'],
    ["src/cli/a.ts", 'import { world } from "../../testing/simulator/world";'],
    ["src/features/publish/a.ts", 'import { command } from "./commands/publish";'],
    ["src/features/publish/a.ts", 'import { take } from "../snapshots/new-snapshot";'],
    ["src/novelty/a.ts", ""],
  ])("would be caught: %s: %s", (path, text) => {
    expect(violationsIn({ path, text })).toHaveLength(1);
  });

  it.each([
    ["src/kernel/a.ts", 'import { x } from "./ids"; // import "node:fs", process.exit, Date.now()'],
    ["src/kernel/a.ts", 'const text = "process.env and import(\'node:fs\')"; const r = /process.env "/;'],
    ["src/kernel/a.ts", "const a = { process: 1 }.process; deps.process.env; deps?.console.log(a);"],
    ["src/kernel/a.ts", "const d = new Date(ms).toISOString(); const m = Math.max(1, 2);"],
    ["testing/simulator/a.ts", "for (const process of all) process.isAlive = process.pid > 1;"],
    ["testing/simulator/a.ts", "const isUp = (process: SimProcess) => process.isAlive;"],
    ["src/errors/a.ts", 'import { isRefusal } from "../kernel/refusal";'],
    ["src/platform/node/files.ts", 'import fs from "node:fs"; process.getuid?.();'],
    ["src/platform/clock-node.ts", 'import fs from "node:fs";'],
    ["src/store/a.ts", 'import type { Platform } from "../platform/platform";'],
    ["src/index.ts", 'export { open } from "./coordinator/open"; import "./platform/node";'],
    [
      "src/cli/a.ts",
      'import { parseArgs } from "node:util"; import { open } from "../index"; console.log(1);',
    ],
  ])("are fine: %s: %s", (path, text) => {
    expect(violationsIn({ path, text })).toEqual([]);
  });
});
