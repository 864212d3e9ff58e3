import * as fs from "node:fs";
import * as path from "node:path";
import { expect, it } from "vitest";
import { keptScratch } from "../docs/kept-scratch";
import { needTool } from "../house/need-tool";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

/** A tool that can be had here, what to run, and how to see where its cache is. */
interface Probe {
  /** As docs/EXEC.md calls it. */
  readonly tool: string;
  readonly needs: string | null;
  readonly files?: Readonly<Record<string, string>>;
  readonly command: readonly string[];
  /** Files of the cache are below it afterwards, or the tool says that they will be. */
  readonly place?: string;
  readonly says?: readonly string[];
  /** Where they would be otherwise. */
  readonly not?: readonly string[];
}

const PYTHON = {
  "mod.py": "x: int = 1\n",
  "main.py": "import mod\nprint(mod.x)\n",
  "test_it.py": "def test_it():\n    assert True\n",
};
const POM =
  "<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version><packaging>pom</packaging></project>";
const PIPENV = "import pipenv.environments as e; print(e.Setting().PIPENV_CACHE_DIR)";
/**
 * A server of its own: one that runs already keeps the directory that it was started with. Started by sccache itself, it
 * would have ten seconds to come up, which is not enough on a machine that is busy with other tests.
 */
const SCCACHE = [
  "export SCCACHE_SERVER_PORT=$((20000 + $$ % 10000))",
  "SCCACHE_START_SERVER=1 SCCACHE_NO_DAEMON=1 sccache & server=$!",
  "isUp=\"require('net').connect($SCCACHE_SERVER_PORT, '127.0.0.1').on('connect', () => process.exit(0)).on('error', () => process.exit(1))\"",
  'until node -e "$isUp"; do kill -0 $server || exit 1; sleep 0.1; done',
  "sccache --show-stats && sccache --stop-server",
].join("\n");
const INSTALLED = path.join(import.meta.dirname, "../../node_modules");

/** With the bytecode that came with it: compiling all of a program's modules anew would take most of the time. */
const COMPILED = ["env", "-u", "PYTHONPYCACHEPREFIX"];

const PROBES: readonly Probe[] = [
  {
    tool: "XDG programs",
    needs: "go",
    command: ["env", "-u", "GOCACHE", "go", "env", "GOCACHE"],
    says: ["xdg/go-build"],
  },
  { tool: "npm", needs: null, command: ["npm", "config", "get", "cache"], says: ["npm"] },
  {
    tool: "Python's bytecode",
    needs: "/usr/bin/pytest-3",
    files: PYTHON,
    command: ["/usr/bin/python3", "main.py"],
    place: "pycache",
    not: ["__pycache__"],
  },
  {
    tool: "pip",
    needs: "/usr/lib/python3/dist-packages/pip",
    command: [...COMPILED, "/usr/bin/python3", "-m", "pip", "cache", "dir"],
    says: ["pip"],
  },
  {
    tool: "Poetry",
    needs: "/usr/bin/poetry",
    command: [...COMPILED, "/usr/bin/poetry", "config", "cache-dir"],
    says: ["poetry"],
  },
  {
    tool: "Pipenv",
    needs: "/usr/bin/pipenv",
    command: [...COMPILED, "/usr/bin/python3", "-c", PIPENV],
    says: ["pipenv"],
  },
  {
    tool: "pytest",
    needs: "/usr/bin/pytest-3",
    files: PYTHON,
    command: [...COMPILED, "/usr/bin/pytest-3", "-q"],
    place: "pytest",
    not: [".pytest_cache"],
  },
  {
    tool: "mypy",
    needs: "/usr/bin/mypy",
    files: PYTHON,
    command: [...COMPILED, "/usr/bin/mypy", "main.py"],
    place: "mypy",
    not: [".mypy_cache"],
  },
  {
    tool: "Black",
    needs: "/usr/bin/black",
    files: PYTHON,
    command: [...COMPILED, "/usr/bin/black", "-q", "main.py"],
    place: "black",
  },
  {
    tool: "Pylint",
    needs: "/usr/bin/pylint",
    files: PYTHON,
    command: [...COMPILED, "/usr/bin/pylint", "--exit-zero", "main.py"],
    place: "pylint",
  },
  {
    tool: "coverage.py",
    needs: "/usr/bin/python3-coverage",
    files: PYTHON,
    command: [...COMPILED, "/usr/bin/python3-coverage", "run", "main.py"],
    place: "coverage",
    not: [".coverage"],
  },
  {
    tool: "pre-commit",
    needs: "/usr/bin/pre-commit",
    command: [...COMPILED, "/usr/bin/pre-commit", "gc"],
    place: "pre-commit",
  },
  {
    tool: "go",
    needs: "go",
    files: { "go.mod": "module x\n", "x.go": "package x\n" },
    command: ["sh", "-c", "go build . && go env GOMODCACHE GOTMPDIR"],
    place: "go-build",
    says: ["go-mod", "go-tmp"],
  },
  {
    tool: "cargo",
    needs: "/usr/bin/cargo",
    files: { "Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\n', "src/main.rs": "fn main() {}\n" },
    command: ["env", "RUSTC=/usr/bin/rustc", "/usr/bin/cargo", "check", "--offline", "--quiet"],
    place: "cargo-target",
    not: ["target"],
  },
  { tool: "sccache", needs: "sccache", command: ["sh", "-c", SCCACHE], says: ["sccache"] },
  {
    tool: "Maven",
    needs: "mvn",
    files: { "pom.xml": POM },
    command: ["mvn", "-o", "-X", "-B", "validate"],
    says: ["maven"],
  },
  {
    tool: "ccache",
    needs: "ccache",
    files: { "a.c": "int main(void) { return 0; }\n" },
    command: ["ccache", "gcc", "-c", "a.c"],
    place: "ccache",
  },
  {
    tool: "TypeScript",
    needs: null,
    files: { "a.ts": "export const a = 1;\n" },
    command: [
      "sh",
      "-c",
      `node "${INSTALLED}/typescript/bin/tsc" --noEmit --incremental --tsBuildInfoFile "$COTENANT_CACHE_ROOT/tsbuildinfo" a.ts`,
    ],
    place: "tsbuildinfo",
    not: ["a.tsbuildinfo", "tsconfig.tsbuildinfo"],
  },
  {
    tool: "Vite, Vitest",
    needs: null,
    files: {
      "vitest.config.mjs":
        "export default { cacheDir: process.env.COTENANT_CACHE_ROOT + '/vite', test: { globals: true } };",
      "a.test.mjs": "it('is', () => {});",
    },
    command: ["node", `${INSTALLED}/vitest/vitest.mjs`, "run"],
    place: "vite",
    not: ["node_modules"],
  },
  {
    tool: "CMake, Meson",
    needs: "cmake",
    files: { "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(x NONE)\n" },
    command: ["sh", "-c", 'cmake -B "$COTENANT_CACHE_ROOT/cmake"'],
    place: "cmake",
    not: ["CMakeCache.txt"],
  },
  {
    tool: "CMake, Meson",
    needs: "meson",
    files: { "meson.build": "project('x')\n" },
    command: ["sh", "-c", 'meson setup "$COTENANT_CACHE_ROOT/meson"'],
    place: "meson",
  },
];

/** One for all tools: each has a folder of its own. */
const repo = TestRepo.make(path.join(keptScratch("cotenant-exec"), "repo"));
const cacheAt = (below: string) => path.join(repo.root, ".agent-cache/agent-ada", below);

function filesIn(place: string): number {
  const stat = fs.statSync(place, { throwIfNoEntry: false });
  if (stat === undefined) return 0;
  return stat.isFile() ? 1 : fs.readdirSync(place, { recursive: true }).length;
}

it.each(PROBES.map((probe, number) => [probe.tool, probe, `tool-${number}`] as const))(
  "%s keeps its cache with the agent",
  async (_, probe, folder) => {
    if (probe.needs !== null) needTool(probe.needs);
    const { files = {}, command, place, says = [], not = [] } = probe;
    const here = path.join(repo.root, folder);
    fs.mkdirSync(here);
    for (const [name, content] of Object.entries(files)) repo.write(`${folder}/${name}`, content);
    const before = place === undefined ? 0 : filesIn(cacheAt(place));
    const setting = { env: { HOME: scratch() }, mostMs: 90_000 };
    const ran = await repo.at(folder).start("agent:ada", ["exec", "--", ...command], setting).done;
    expect(ran.status, `${ran}`).toBe(0);
    if (place !== undefined) expect(filesIn(cacheAt(place))).toBeGreaterThan(before);
    for (const name of says) expect(ran.stdout.split(/["\s]/)).toContain(cacheAt(name));
    for (const name of not) expect(fs.existsSync(path.join(here, name)), name).toBe(false);
  },
);
