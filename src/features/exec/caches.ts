/** What one tool keeps where, and how it is told to keep it elsewhere. */
export interface ToolCache {
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
  /** What else there is to know, in the table of docs/EXEC.md: it follows the variables. */
  readonly note?: string;
  /** Why no test runs the tool. */
  readonly unchecked?: string;
}

/** The tools that can be told by their environment. `docs/EXEC.md` is made from it, and has those that cannot. */
export const TOOL_CACHES: readonly ToolCache[] = [
  { tool: "XDG programs", places: { XDG_CACHE_HOME: "xdg" } },
  { tool: "npm", places: { npm_config_cache: "npm" } },
  {
    tool: "pnpm",
    places: { PNPM_HOME: "pnpm" },
    note: " (its store is below it)",
    unchecked: "not in Debian",
  },
  {
    tool: "Yarn",
    places: { YARN_CACHE_FOLDER: "yarn", YARN_GLOBAL_FOLDER: "yarn-global" },
    unchecked: "Debian's brings a Node of its own",
  },
  { tool: "Bun", places: { BUN_INSTALL_CACHE_DIR: "bun" }, unchecked: "not in Debian" },
  { tool: "Deno", places: { DENO_DIR: "deno" }, unchecked: "not in Debian" },
  {
    tool: "Node 22 and newer",
    places: { NODE_COMPILE_CACHE: "node-compile" },
    unchecked: "newer than Debian's, and than ours",
  },
  { tool: "Turborepo", places: { TURBO_CACHE_DIR: "turbo" }, unchecked: "not in Debian" },
  {
    tool: "Nx",
    places: { NX_CACHE_DIRECTORY: "nx", NX_WORKSPACE_DATA_DIRECTORY: "nx-data" },
    unchecked: "not in Debian",
  },
  {
    tool: "Babel",
    places: { BABEL_CACHE_PATH: "babel.json" },
    unchecked: "Debian's brings a Node of its own",
  },
  { tool: "Python's bytecode", places: { PYTHONPYCACHEPREFIX: "pycache" } },
  { tool: "pip", places: { PIP_CACHE_DIR: "pip" } },
  { tool: "uv", places: { UV_CACHE_DIR: "uv" }, unchecked: "not in Debian" },
  { tool: "Poetry", places: { POETRY_CACHE_DIR: "poetry" } },
  { tool: "Pipenv", places: { PIPENV_CACHE_DIR: "pipenv" } },
  { tool: "pytest", places: {}, options: { PYTEST_ADDOPTS: "-o 'cache_dir={place}/pytest'" } },
  { tool: "mypy", places: { MYPY_CACHE_DIR: "mypy" } },
  { tool: "Ruff", places: { RUFF_CACHE_DIR: "ruff" }, unchecked: "not in Debian" },
  { tool: "Black", places: { BLACK_CACHE_DIR: "black" } },
  { tool: "Pylint", places: { PYLINTHOME: "pylint" } },
  { tool: "coverage.py", places: { COVERAGE_FILE: "coverage/data" }, mustExist: ["coverage"] },
  { tool: "pre-commit", places: { PRE_COMMIT_HOME: "pre-commit" } },
  {
    tool: "go",
    places: { GOCACHE: "go-build", GOMODCACHE: "go-mod", GOTMPDIR: "go-tmp" },
    mustExist: ["go-tmp"],
  },
  { tool: "golangci-lint", places: { GOLANGCI_LINT_CACHE: "golangci-lint" }, unchecked: "not in Debian" },
  {
    tool: "staticcheck",
    places: { STATICCHECK_CACHE: "staticcheck" },
    unchecked: "in Debian as source only",
  },
  {
    tool: "cargo",
    places: { CARGO_TARGET_DIR: "cargo-target" },
    note: "; the registry in `CARGO_HOME` stays shared: it has settings and credentials, and locks itself",
  },
  {
    tool: "sccache",
    places: { SCCACHE_DIR: "sccache" },
    note: "; a server that runs already serves everybody, with the directory that it was started with: stop it first (`sccache --stop-server`), or give each agent a port (`SCCACHE_SERVER_PORT`)",
  },
  {
    tool: "Gradle",
    places: { GRADLE_USER_HOME: "gradle" },
    options: { GRADLE_OPTS: "-Dorg.gradle.projectcachedir={place}/gradle-project" },
    note: "; `~/.gradle/gradle.properties` is not seen then",
    unchecked: "Debian's is 4.4, too old for the second",
  },
  { tool: "Maven", places: {}, options: { MAVEN_OPTS: "-Dmaven.repo.local={place}/maven" } },
  { tool: "Coursier, sbt, Mill", places: { COURSIER_CACHE: "coursier" }, unchecked: "not in Debian" },
  { tool: "ccache", places: { CCACHE_DIR: "ccache" } },
  {
    tool: "Zig",
    places: { ZIG_GLOBAL_CACHE_DIR: "zig", ZIG_LOCAL_CACHE_DIR: "zig-local" },
    unchecked: "not in Debian",
  },
  {
    tool: "vcpkg",
    places: { VCPKG_DEFAULT_BINARY_CACHE: "vcpkg" },
    mustExist: ["vcpkg"],
    unchecked: "not in Debian",
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
