/** What one tool keeps where, and how it is told to keep it elsewhere. */
export interface ToolCache {
  readonly world: "any" | "Node" | "Python" | "Go" | "Rust" | "JVM" | "C and C++";
  readonly tool: string;
  /** Variables that name a place of the agent's own: below its directory. */
  readonly places: Readonly<Record<string, string>>;
  /**
   * Variables that hold options; ours are added to what is there. `{place}` stands for the agent's directory. Where that
   * has a space in it, only options that can be quoted are given.
   */
  readonly options?: Readonly<Record<string, string>>;
  /** Directories that must be there before the tool starts. */
  readonly mustExist?: readonly string[];
}

/** The tools that can be told by their environment. `docs/EXEC.md` has the same table, and those that cannot. */
export const TOOL_CACHES: readonly ToolCache[] = [
  { world: "any", tool: "XDG programs", places: { XDG_CACHE_HOME: "xdg" } },
  { world: "Node", tool: "npm", places: { npm_config_cache: "npm" } },
  { world: "Node", tool: "pnpm", places: { PNPM_HOME: "pnpm" } },
  { world: "Node", tool: "Yarn", places: { YARN_CACHE_FOLDER: "yarn", YARN_GLOBAL_FOLDER: "yarn-global" } },
  { world: "Node", tool: "Bun", places: { BUN_INSTALL_CACHE_DIR: "bun" } },
  { world: "Node", tool: "Deno", places: { DENO_DIR: "deno" } },
  { world: "Node", tool: "Node 22 and newer", places: { NODE_COMPILE_CACHE: "node-compile" } },
  { world: "Node", tool: "Turborepo", places: { TURBO_CACHE_DIR: "turbo" } },
  {
    world: "Node",
    tool: "Nx",
    places: { NX_CACHE_DIRECTORY: "nx", NX_WORKSPACE_DATA_DIRECTORY: "nx-data" },
  },
  { world: "Node", tool: "Babel", places: { BABEL_CACHE_PATH: "babel.json" } },
  { world: "Python", tool: "Python's bytecode", places: { PYTHONPYCACHEPREFIX: "pycache" } },
  { world: "Python", tool: "pip", places: { PIP_CACHE_DIR: "pip" } },
  { world: "Python", tool: "uv", places: { UV_CACHE_DIR: "uv" } },
  { world: "Python", tool: "Poetry", places: { POETRY_CACHE_DIR: "poetry" } },
  { world: "Python", tool: "Pipenv", places: { PIPENV_CACHE_DIR: "pipenv" } },
  {
    world: "Python",
    tool: "pytest",
    places: {},
    options: { PYTEST_ADDOPTS: "-o 'cache_dir={place}/pytest'" },
  },
  { world: "Python", tool: "mypy", places: { MYPY_CACHE_DIR: "mypy" } },
  { world: "Python", tool: "Ruff", places: { RUFF_CACHE_DIR: "ruff" } },
  { world: "Python", tool: "Black", places: { BLACK_CACHE_DIR: "black" } },
  { world: "Python", tool: "Pylint", places: { PYLINTHOME: "pylint" } },
  {
    world: "Python",
    tool: "coverage.py",
    places: { COVERAGE_FILE: "coverage/data" },
    mustExist: ["coverage"],
  },
  { world: "Python", tool: "pre-commit", places: { PRE_COMMIT_HOME: "pre-commit" } },
  {
    world: "Go",
    tool: "go",
    places: { GOCACHE: "go-build", GOMODCACHE: "go-mod", GOTMPDIR: "go-tmp" },
    mustExist: ["go-tmp"],
  },
  { world: "Go", tool: "golangci-lint", places: { GOLANGCI_LINT_CACHE: "golangci-lint" } },
  { world: "Go", tool: "staticcheck", places: { STATICCHECK_CACHE: "staticcheck" } },
  { world: "Rust", tool: "cargo", places: { CARGO_TARGET_DIR: "cargo-target" } },
  { world: "Rust", tool: "sccache", places: { SCCACHE_DIR: "sccache" } },
  {
    world: "JVM",
    tool: "Gradle",
    places: { GRADLE_USER_HOME: "gradle" },
    options: { GRADLE_OPTS: "-Dorg.gradle.projectcachedir={place}/gradle-project" },
  },
  { world: "JVM", tool: "Maven", places: {}, options: { MAVEN_OPTS: "-Dmaven.repo.local={place}/maven" } },
  { world: "JVM", tool: "Coursier, sbt, Mill", places: { COURSIER_CACHE: "coursier" } },
  { world: "C and C++", tool: "ccache", places: { CCACHE_DIR: "ccache" } },
  {
    world: "C and C++",
    tool: "Zig",
    places: { ZIG_GLOBAL_CACHE_DIR: "zig", ZIG_LOCAL_CACHE_DIR: "zig-local" },
  },
  {
    world: "C and C++",
    tool: "vcpkg",
    places: { VCPKG_DEFAULT_BINARY_CACHE: "vcpkg" },
    mustExist: ["vcpkg"],
  },
];

export interface CacheEnvironment {
  readonly variables: Readonly<Record<string, string>>;
  readonly directories: readonly string[];
}

/** The variables for caches below `place`, an absolute path, on top of what the caller has set itself. */
export function cacheEnvironment(
  place: string,
  inherited: Readonly<Record<string, string | undefined>>,
): CacheEnvironment {
  const variables: Record<string, string> = {};
  const directories: string[] = [];
  for (const { places, options = {}, mustExist = [] } of TOOL_CACHES) {
    for (const [name, below] of Object.entries(places)) variables[name] = `${place}/${below}`;
    for (const [name, text] of Object.entries(options))
      if (text.includes("'") || !/\s/.test(place))
        variables[name] = withOption(inherited[name], text.replaceAll("{place}", place));
    directories.push(...mustExist.map((below) => `${place}/${below}`));
  }
  return { variables, directories };
}

/** Last, because there the last word counts; once, however deep commands call each other. */
function withOption(before: string | undefined, option: string): string {
  if (before === undefined || before.trim() === "") return option;
  return ` ${before} `.includes(` ${option} `) ? before : `${before} ${option}`;
}

/**
 * An agent's directory: its id without the colon, which separates paths in many variables. Where capital letters could
 * make two ids one directory, a few digits of a hash keep them apart.
 */
export function ownerName(agentId: string, hash: (text: string) => string): string {
  const plain = agentId.replace(":", "-");
  return plain === plain.toLowerCase() ? plain : `${plain}-${hash(agentId).slice(0, 8)}`;
}
