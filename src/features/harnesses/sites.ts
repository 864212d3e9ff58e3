import { HARNESS_NAMES, type HarnessName } from "../../identity/harness";
import { below } from "../../identity/path-text";
import type { Environment } from "../../identity/repository";

export type Level = "project" | "user";

/**
 * How a harness keeps its hooks: `nested`, JSON with groups of handlers; `flat`, JSON with handlers; `toml`, tables in a
 * configuration file; `plugin`, a program of our own that the harness loads.
 */
type Format = "nested" | "flat" | "toml" | "plugin";

/** One file in which a harness looks for hooks. */
export interface Site {
  readonly harness: HarnessName;
  readonly level: Level;
  readonly path: string;
  /** As people know it: below the project, or below their home. */
  readonly shown: string;
  readonly format: Format;
  /** Nobody else has a say in it: it goes with our last word. */
  readonly isOwn: boolean;
  /** Meant to be committed, or meant not to be. Null where the harness has one file for both. */
  readonly isCommitted: boolean | null;
}

/** Where to look: at the root of a worktree, and in a home. */
export interface Grounds {
  readonly root: string | null;
  readonly home: string | null;
  readonly env: Environment;
}

interface SiteFile {
  readonly name: string;
  readonly format: Format;
  readonly isOwn?: true;
  readonly isCommitted?: boolean;
}

interface Home {
  /** Variables that move the directory, and what is below them then. */
  readonly moved: readonly (readonly [variable: string, below: string])[];
  readonly usual: string;
}

const IN_PROJECT: Readonly<Record<HarnessName, readonly SiteFile[]>> = {
  claude: [
    { name: ".claude/settings.local.json", format: "nested", isCommitted: false },
    { name: ".claude/settings.json", format: "nested", isCommitted: true },
  ],
  codex: [
    { name: ".codex/hooks.json", format: "nested" },
    { name: ".codex/config.toml", format: "toml" },
  ],
  cursor: [{ name: ".cursor/hooks.json", format: "flat" }],
  gemini: [{ name: ".gemini/settings.json", format: "nested" }],
  copilot: [{ name: ".github/hooks/cotenant.json", format: "flat", isOwn: true }],
  opencode: [{ name: ".opencode/plugins/cotenant.js", format: "plugin", isOwn: true }],
  qwen: [{ name: ".qwen/settings.json", format: "nested" }],
  pi: [{ name: ".pi/extensions/cotenant.js", format: "plugin", isOwn: true }],
};

const IN_HOME: Readonly<Record<HarnessName, readonly SiteFile[]>> = {
  claude: [{ name: "settings.json", format: "nested" }],
  codex: [
    { name: "hooks.json", format: "nested" },
    { name: "config.toml", format: "toml" },
  ],
  cursor: [{ name: "hooks.json", format: "flat" }],
  gemini: [{ name: "settings.json", format: "nested" }],
  copilot: [{ name: "hooks/cotenant.json", format: "flat", isOwn: true }],
  opencode: [{ name: "plugins/cotenant.js", format: "plugin", isOwn: true }],
  qwen: [{ name: "settings.json", format: "nested" }],
  pi: [{ name: "extensions/cotenant.js", format: "plugin", isOwn: true }],
};

const HOMES: Readonly<Record<HarnessName, Home>> = {
  claude: { moved: [["CLAUDE_CONFIG_DIR", ""]], usual: ".claude" },
  codex: { moved: [["CODEX_HOME", ""]], usual: ".codex" },
  cursor: { moved: [], usual: ".cursor" },
  gemini: { moved: [["GEMINI_CLI_HOME", "/.gemini"]], usual: ".gemini" },
  copilot: { moved: [["COPILOT_HOME", ""]], usual: ".copilot" },
  opencode: {
    moved: [
      ["OPENCODE_CONFIG_DIR", ""],
      ["XDG_CONFIG_HOME", "/opencode"],
    ],
    usual: ".config/opencode",
  },
  qwen: { moved: [["QWEN_HOME", ""]], usual: ".qwen" },
  pi: { moved: [["PI_CODING_AGENT_DIR", ""]], usual: ".pi/agent" },
};

/** Every file of a harness at a level, the one that is taken by default first. */
export function sitesOf(harness: HarnessName, level: Level, grounds: Grounds): Site[] {
  const places = (level === "project" ? IN_PROJECT : IN_HOME)[harness];
  const base = level === "project" ? grounds.root : homeOf(harness, grounds);
  if (base === null) return [];
  return places.map(({ name, format, isOwn = false, isCommitted = null }) => {
    const path = `${base}/${name}`;
    const shown = level === "project" ? name : tilde(path, grounds.home);
    return { harness, level, path, shown, format, isOwn, isCommitted };
  });
}

/** A path as people know it: below the project, or below their home. */
export function shownPath(path: string, { root, home }: Grounds): string {
  return (root === null ? null : below(path, root)) || tilde(path, home);
}

export function allSites(grounds: Grounds): Site[] {
  return HARNESS_NAMES.flatMap((harness) => [
    ...sitesOf(harness, "project", grounds),
    ...sitesOf(harness, "user", grounds),
  ]);
}

/** Where a harness keeps what is the user's. */
export function homeOf(harness: HarnessName, { home, env }: Grounds): string | null {
  const { moved, usual } = HOMES[harness];
  for (const [variable, below] of moved) {
    const value = env[variable];
    if (value?.startsWith("/")) return value.replace(/(?<=.)\/+$/, "") + below;
  }
  return home === null || home === "" ? null : `${home}/${usual}`;
}

function tilde(path: string, home: string | null): string {
  return home !== null && home !== "" && path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}
