import type { HarnessName } from "../../../src/identity/harness";
import type { Deed } from "./deeds";

/** Harnesses that are played: every form of hooks is among them. */
export const PLAYED = ["claude", "codex", "cursor", "gemini", "copilot", "opencode"] as const;
export type Played = (typeof PLAYED)[number];

/** Where a session runs, and as whom. */
export interface Stage {
  readonly root: string;
  readonly home: string;
  readonly session: string;
  /** Inside a subagent. */
  readonly subagent?: string;
}

/** A hook as the harness finds it in settings. */
export interface Hook {
  /** As the settings name it. */
  readonly event: string;
  readonly matcher: string | null;
  /** For a shell, or with arguments of its own. */
  readonly line: string;
  readonly args: readonly string[] | null;
  readonly timeoutMs: number;
  /** A failure of it refuses. */
  readonly failsClosed: boolean;
  /** In another harness's settings, and in its words. */
  readonly isBorrowed: boolean;
}

/** How a hook's process ended. */
export interface HookEnd {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
}

/** What a harness makes of it. `failed`: it takes the hook for broken, and goes on. */
export type Verdict =
  | { readonly is: "allowed"; readonly told: string | null }
  | { readonly is: "denied"; readonly reason: string; readonly endsTurn: boolean }
  | { readonly is: "failed"; readonly why: string };

/** A tool call in the harness's own words. */
export interface ToolCall {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly id: string;
}

/** Moments at which a harness calls out, in the order in which they come. */
export type Moment =
  | { readonly at: "start" }
  | { readonly at: "prompt"; readonly prompt: string }
  | { readonly at: "before"; readonly event: string; readonly call: ToolCall }
  | { readonly at: "after"; readonly event: string; readonly call: ToolCall; readonly output: string }
  | { readonly at: "stop" }
  | { readonly at: "subagent-stop" }
  | { readonly at: "end" };

/** What is particular to one harness, as its documentation has it. */
export interface Dialect {
  readonly name: HarnessName;
  hooks(stage: Stage): readonly Hook[];
  /** What hooks get besides the harness's own environment. */
  hookEnv(stage: Stage): Readonly<Record<string, string>>;
  /** What commands of the shell tool get. */
  shellEnv(stage: Stage): Readonly<Record<string, string>>;
  toolFor(deed: Deed, stage: Stage): ToolCall;
  /** Events before and after a tool, in their order. */
  around(call: ToolCall): { readonly before: readonly string[]; readonly after: readonly string[] };
  /** Events for the rest of a session's life. */
  readonly life: Readonly<Record<"start" | "prompt" | "stop" | "subagent-stop" | "end", readonly string[]>>;
  fits(hook: Hook, call: ToolCall): boolean;
  payload(event: string, moment: Moment, stage: Stage, hook: Hook): Readonly<Record<string, unknown>>;
  verdict(hook: Hook, end: HookEnd): Verdict;
}

export function objectIn(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

export const words = (value: unknown): string => (typeof value === "string" ? value : "");
