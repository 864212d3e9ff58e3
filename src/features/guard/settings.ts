import { type Committed, committedConfig, committedIn, replacedConfig } from "../../config/committed";
import type { StandIn } from "../../config/load";
import { type ConfigMemory, memoryOf } from "../../config/memory-place";
import { configFiles } from "../../config/places";
import { GUARD } from "../../config/sections/guard";
import { decode } from "../../identity/path-text";
import type { Repository } from "../../identity/repository";
import type { PlacedRule } from "../../kernel/path-rules";
import { DEFAULT_POLICY, type Policy } from "../../kernel/policy";
import { modesFor } from "../../store/layout";
import { DEFAULT_STORE_OPTIONS } from "../../store/store";
import type { World } from "./world";

/** What of the configuration the guard goes by. */
export interface GuardSettings {
  /** What is wrong with the repository's file, and where what it last said is kept; null where it counts itself. */
  readonly broken: { readonly standIn: StandIn; readonly memory: ConfigMemory } | null;
  readonly policy: Policy;
  /** Which agents may write where. */
  readonly pathRules: readonly PlacedRule[];
  readonly busyTimeoutMs: number;
  readonly rotateBytes: number;
  readonly retrySecs: number;
  readonly retry: "once" | "on_release";
  readonly acrossWorktrees: "off" | "warn" | "enforce";
  readonly stayInWorktree: "off" | "warn" | "enforce";
  /** Whether `worktree create` makes any, and where instead of beside the main one. */
  readonly makesWorktrees: boolean;
  readonly worktreeDirectory: string | null;
  readonly onFailure: "open" | "closed_if_held" | "closed";
  readonly deadlineMs: number;
}

export const DEFAULT_SETTINGS: GuardSettings = {
  broken: null,
  policy: DEFAULT_POLICY,
  pathRules: [],
  busyTimeoutMs: DEFAULT_STORE_OPTIONS.busyTimeoutMs,
  rotateBytes: DEFAULT_STORE_OPTIONS.rotateBytes,
  retrySecs: GUARD["guard.retry_secs"].default,
  retry: GUARD["guard.retry"].default,
  acrossWorktrees: GUARD["guard.across_worktrees"].default,
  stayInWorktree: GUARD["guard.stay_in_worktree"].default,
  makesWorktrees: true,
  worktreeDirectory: null,
  onFailure: GUARD["guard.on_failure"].default,
  deadlineMs: GUARD["guard.deadline_secs"].default * 1000,
};

/** Variables that say who asks, not how things are done. */
const NOT_SETTINGS = new Set([
  "COTENANT_AGENT_ID",
  "COTENANT_SESSION_ID",
  "COTENANT_DEBUG",
  "COTENANT_SECRET",
  "COTENANT_NO_DAEMON",
]);

/** A line that is neither empty nor a comment nor the mere name of a section. */
const SAYS_SOMETHING = /^[ \t]*(?!\[[A-Za-z0-9_-]+\][ \t]*(?:#[^\n]*)?\r?$)[^#\s]/m;

/**
 * A file that only `init` has written says nothing but comments, and most people never change it: then reading the whole
 * schema would be most of what a check costs.
 */
export async function guardSettings(world: World, repository: Repository): Promise<GuardSettings> {
  const { platform, env, home } = world;
  const { worktreeRoot } = repository;
  const committed = committedIn(world.git, repository);
  const question = { platform, env, home, worktreeRoot, committed };
  let isPlain = !Object.keys(env).some((name) => name.startsWith("COTENANT_") && !NOT_SETTINGS.has(name));
  for (const { source, file } of configFiles(question))
    isPlain &&= !(await saysSomething(world, file, source === "worktree" ? committed : null));
  const memory = memoryOf(repository, modesFor(repository.config.sharedRepository));
  // What a file said that now says nothing is to be forgotten, which the loader does.
  if (isPlain && (await platform.files.lstat(memory.file)) === null) return DEFAULT_SETTINGS;
  const { loadConfig } = await import("../../config/load");
  const { readTrust } = await import("../../config/trust");
  const trust = await readTrust(platform, repository.controlDir);
  const { pathRulesIn } = await import("../../config/path-rules");
  const { values, policy, standIn, layers } = await loadConfig({ ...question, trust, memory });
  return {
    broken: standIn === null ? null : { standIn, memory },
    policy,
    pathRules: pathRulesIn(layers),
    busyTimeoutMs: values["store.busy_timeout_secs"] * 1000,
    rotateBytes: values["store.rotate_bytes"],
    retrySecs: values["guard.retry_secs"],
    retry: values["guard.retry"],
    acrossWorktrees: values["guard.across_worktrees"],
    stayInWorktree: values["guard.stay_in_worktree"],
    makesWorktrees: values["worktree.mode"] !== "off",
    worktreeDirectory: values["worktree.directory"],
    onFailure: values["guard.on_failure"],
    deadlineMs: values["guard.deadline_secs"] * 1000,
  };
}

/** Also what cannot be read: the loader knows what that means. */
async function saysSomething(
  { platform }: World,
  file: string,
  committed: Committed | null,
): Promise<boolean> {
  try {
    const stat = await platform.files.stat(file);
    if (stat === null && committed === null) return false;
    if (stat !== null && stat.kind !== "file") return true;
    const says = (bytes: Uint8Array | null) => bytes !== null && SAYS_SOMETHING.test(decode(bytes));
    if (stat === null) return says(await committedConfig(platform, committed!));
    const bytes = await platform.files.readFile(file);
    if (says(bytes) || bytes === null || committed === null) return says(bytes);
    // What it no longer says may bind until that is committed.
    return says(await replacedConfig(platform, committed, decode(bytes)));
  } catch {
    return true;
  }
}
