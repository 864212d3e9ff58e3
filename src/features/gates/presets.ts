import type { Platform } from "../../platform/platform";

/** A gate that many repositories want, filled in by what this one has. */
export interface Preset {
  readonly title: string;
  /** Null: somebody has to say so. */
  readonly command: string | null;
  readonly because: string;
}

export const PRESETS = ["tests", "lint", "typecheck", "build", "format", "review"] as const;
export type PresetName = (typeof PRESETS)[number];

const TITLES: Readonly<Record<PresetName, string>> = {
  tests: "The tests pass",
  lint: "The linter has nothing to say",
  typecheck: "The types are right",
  build: "It builds",
  format: "The code is formatted",
  review: "Somebody else has read it",
};

/** What of a repository a preset looks at. */
export interface Repo {
  /** Scripts of `package.json`; null without one that can be read. */
  readonly scripts: Readonly<Record<string, string>> | null;
  readonly has: ReadonlySet<string>;
  readonly makeTargets: ReadonlySet<string>;
}

const SCRIPTS: Readonly<Partial<Record<PresetName, readonly string[]>>> = {
  tests: ["test"],
  lint: ["lint"],
  typecheck: ["typecheck", "type-check", "types", "tsc"],
  build: ["build"],
  format: ["format:check", "check:format", "fmt:check"],
};

const TARGETS: Readonly<Partial<Record<PresetName, readonly string[]>>> = {
  tests: ["test", "check"],
  lint: ["lint"],
  typecheck: ["typecheck"],
  build: ["build", "all"],
  format: ["format-check", "fmt-check"],
};

/** By a file that says which tools there are, the first that is there. */
const TOOLS: readonly (readonly [file: string, Readonly<Partial<Record<PresetName, string>>>])[] = [
  ["tsconfig.json", { typecheck: "npx --no-install tsc --noEmit" }],
  ["biome.json", { lint: "npx --no-install biome check", format: "npx --no-install biome format" }],
  [
    "Cargo.toml",
    {
      tests: "cargo test",
      lint: "cargo clippy --all-targets -- -D warnings",
      typecheck: "cargo check --all-targets",
      build: "cargo build",
      format: "cargo fmt --check",
    },
  ],
  [
    "go.mod",
    { tests: "go test ./...", lint: "go vet ./...", typecheck: "go build ./...", build: "go build ./..." },
  ],
  ["pytest.ini", { tests: "python -m pytest" }],
  ["mypy.ini", { typecheck: "python -m mypy ." }],
  ["ruff.toml", { lint: "ruff check .", format: "ruff format --check ." }],
  ["pyproject.toml", { tests: "python -m pytest", lint: "ruff check .", typecheck: "python -m mypy ." }],
  ["pom.xml", { tests: "mvn --batch-mode test", build: "mvn --batch-mode package" }],
  ["gradlew", { tests: "./gradlew test", build: "./gradlew assemble", lint: "./gradlew check" }],
];

const LOOKED_AT: readonly string[] = [
  ...TOOLS.map(([file]) => file),
  ...["pnpm-lock.yaml", "yarn.lock", "bun.lockb", "bun.lock"],
];

/** Null where nothing in the repository says how. */
export function choosePreset(name: PresetName, repo: Repo): Preset | null {
  const title = TITLES[name];
  if (name === "review") return { title, command: null, because: "a person has to say so" };
  const script = SCRIPTS[name]?.find((one) => isScript(repo.scripts?.[one]));
  if (script !== undefined)
    return { title, command: runScript(script, repo), because: `package.json has a script "${script}"` };
  const target = TARGETS[name]?.find((one) => repo.makeTargets.has(one));
  if (target !== undefined)
    return { title, command: `make ${target}`, because: `the Makefile has a target "${target}"` };
  for (const [file, commands] of TOOLS) {
    const command = commands[name];
    if (command !== undefined && repo.has.has(file)) return { title, command, because: `there is a ${file}` };
  }
  return null;
}

/** The one that `npm init` writes only says that there is none. */
function isScript(text: string | undefined): boolean {
  return text !== undefined && text.trim() !== "" && !text.includes("no test specified");
}

function runScript(script: string, { has }: Repo): string {
  const manager = has.has("pnpm-lock.yaml")
    ? "pnpm"
    : has.has("yarn.lock")
      ? "yarn"
      : has.has("bun.lock") || has.has("bun.lockb")
        ? "bun"
        : "npm";
  if (script === "test" && manager !== "bun") return `${manager} test`;
  return `${manager} run ${script}`;
}

/** Reads only, and takes what it cannot read for not there. */
export async function lookAround({ files }: Platform, root: string): Promise<Repo> {
  const read = async (name: string) => {
    const stat = await files.stat(`${root}/${name}`);
    if (stat?.kind !== "file" || stat.size > 1 << 20) return null;
    const bytes = await files.readFile(`${root}/${name}`);
    return bytes === null ? null : new TextDecoder().decode(bytes);
  };
  const has = new Set<string>();
  for (const name of LOOKED_AT) if ((await files.stat(`${root}/${name}`))?.kind === "file") has.add(name);
  const makefile = (await read("Makefile")) ?? (await read("makefile")) ?? "";
  const targets = [...makefile.matchAll(/^([A-Za-z][\w.-]{0,60})[ \t]*:(?!=)/gm)].map(([, name]) => name!);
  return { scripts: scriptsIn(await read("package.json")), has, makeTargets: new Set(targets) };
}

function scriptsIn(text: string | null): Record<string, string> | null {
  if (text === null) return null;
  try {
    const { scripts } = JSON.parse(text) as { scripts?: unknown };
    if (typeof scripts !== "object" || scripts === null) return {};
    const entries = Object.entries(scripts).filter(
      (entry): entry is [string, string] => typeof entry[1] === "string" && entry[0] !== "__proto__",
    );
    return Object.fromEntries(entries);
  } catch {
    return null;
  }
}
