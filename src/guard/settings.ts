import { configFiles } from "../config/places";
import { GUARD } from "../config/sections/guard";
import { decode } from "../identity/path-text";
import type { Repository } from "../identity/repository";
import { DEFAULT_POLICY, type Policy } from "../kernel/policy";
import { DEFAULT_STORE_OPTIONS } from "../store/store";
import type { World } from "./world";

/** What of the configuration the guard goes by. */
export interface GuardSettings {
  readonly policy: Policy;
  readonly busyTimeoutMs: number;
  readonly rotateBytes: number;
  readonly retrySecs: number;
  readonly retry: "once" | "on_release";
  readonly acrossWorktrees: "off" | "warn" | "enforce";
  readonly stayInWorktree: "off" | "warn" | "enforce";
  readonly onFailure: "open" | "closed_if_held" | "closed";
  readonly deadlineMs: number;
}

export const DEFAULT_SETTINGS: GuardSettings = {
  policy: DEFAULT_POLICY,
  busyTimeoutMs: DEFAULT_STORE_OPTIONS.busyTimeoutMs,
  rotateBytes: DEFAULT_STORE_OPTIONS.rotateBytes,
  retrySecs: GUARD["guard.retry_secs"].default,
  retry: GUARD["guard.retry"].default,
  acrossWorktrees: GUARD["guard.across_worktrees"].default,
  stayInWorktree: GUARD["guard.stay_in_worktree"].default,
  onFailure: GUARD["guard.on_failure"].default,
  deadlineMs: GUARD["guard.deadline_secs"].default * 1000,
};

/** Variables that say who asks, not how things are done. */
const NOT_SETTINGS = new Set([
  "COTENANT_AGENT_ID",
  "COTENANT_SESSION_ID",
  "COTENANT_DEBUG",
  "COTENANT_SECRET",
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
  const question = { platform, env, home, worktreeRoot };
  let isPlain = !Object.keys(env).some((name) => name.startsWith("COTENANT_") && !NOT_SETTINGS.has(name));
  for (const { file } of isPlain ? configFiles(question) : []) {
    const bytes = await readIfAllowed(world, file);
    if (bytes !== null && SAYS_SOMETHING.test(decode(bytes))) isPlain = false;
  }
  if (isPlain) return DEFAULT_SETTINGS;
  const { inspectConfig } = await import("../config/load");
  const { readTrust } = await import("../config/trust");
  // What is wrong in it is left out: a misspelt key must not decide whether agents can work.
  const { config } = await inspectConfig({
    ...question,
    trust: await readTrust(platform, repository.controlDir),
  });
  const { values, policy } = config;
  return {
    policy,
    busyTimeoutMs: values["store.busy_timeout_secs"] * 1000,
    rotateBytes: values["store.rotate_bytes"],
    retrySecs: values["guard.retry_secs"],
    retry: values["guard.retry"],
    acrossWorktrees: values["guard.across_worktrees"],
    stayInWorktree: values["guard.stay_in_worktree"],
    onFailure: values["guard.on_failure"],
    deadlineMs: values["guard.deadline_secs"] * 1000,
  };
}

async function readIfAllowed({ platform }: World, file: string): Promise<Uint8Array | null> {
  try {
    return await platform.files.readFile(file);
  } catch {
    return null;
  }
}
