import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import type { CotenantError } from "../../errors/cotenant-error";
import type { Ulid } from "../../kernel/ids";
import type { Commands } from "../../platform/commands";
import type { Trees } from "../../platform/trees";
import type { Filter } from "../issues/query";
import type { OpenFence } from "../publish/claims";
import type { RunState, StopHow } from "./run-file";
import type { AgentTemplate } from "./templates";

/** What a run works with. */
export interface DispatchParts {
  /** Of whoever started it: lands, and is asked where workers have no say. */
  readonly workspace: Workspace;
  readonly session: Session;
  readonly trees: Trees;
  readonly commands: Commands;
  /** What stands between a push and the claims, where claims are shared. */
  readonly openFence: (workspace: Workspace, session: Session) => OpenFence;
  /** Where `cotenant` is, for hooks of harnesses in the workers' worktrees. */
  readonly program: { readonly node: string; readonly program: string } | null;
  /** Whether nobody listens on these ports now. */
  readonly areFree: (from: number, count: number) => Promise<boolean>;
  /** Whether a program can be started by this name. */
  readonly hasProgram: (name: string) => Promise<boolean>;
}

/** How the work of an issue leaves its worker. */
export type Delivery = "branch" | "land" | "pr";

export interface DispatchOptions {
  readonly agents: number;
  /** For a shell; null where a template says it. */
  readonly command: string | null;
  readonly template: AgentTemplate | null;
  readonly delivery: Delivery;
  /** With `land`, and for the branch of a pull request: the remote's name, null for the usual one; undefined: nothing is pushed. */
  readonly push: string | null | undefined;
  readonly target: string | null;
  /** Whether what an agent left uncommitted is committed. */
  readonly commits: boolean;
  /** Whether landed branches are deleted; null: `land.clean`. */
  readonly clean: boolean | null;
  readonly filter: Filter;
  /** Only these; null: any. */
  readonly only: readonly Ulid[] | null;
  /** At most so many issues; null: as many as there are. */
  readonly most: number | null;
  /** Goes on when nothing is left, until it is stopped. */
  readonly waits: boolean;
  readonly retries: number;
  readonly backoffMs: number;
  /** Of one attempt. */
  readonly timeoutMs: number;
  readonly stallMs: number;
  /** In US dollars, of all attempts at one issue; null: no limit. */
  readonly costPerIssue: number | null;
  /** Of the whole run. */
  readonly costInAll: number | null;
  /** What workers are called: `agent:<name>-1` and so on. */
  readonly name: string;
  /** Whether each worker has caches of its own. */
  readonly ownCaches: boolean;
  /** An agent that changes nothing has done its work all the same. */
  readonly allowsEmpty: boolean;
  readonly signal: AbortSignal;
  /** Takes no more issues, and ends when those under way are over. */
  readonly drained: AbortSignal;
  readonly onEvent: (event: DispatchEvent, state: RunState) => void;
  /** Somebody has asked for the end from elsewhere, with `dispatch stop`: the caller aborts one of the two signals. */
  readonly onStop: (how: StopHow) => void;
}

/** How a claim went. */
export interface ClaimOutcome {
  readonly success: boolean;
  readonly reason: string | null;
  /** Only this machine knows of it yet. */
  readonly offline: boolean;
  /** The remote was asked for and could not be reached. */
  readonly degraded: boolean;
  readonly error: string | null;
}

export type IssueEnd = "done" | "gated" | "given_back" | "lost" | "deleted" | "interrupted";

export type EventKind =
  | "started"
  | "worker"
  | "claimed"
  | "working"
  | "stalled"
  | "attempt_failed"
  | "gate"
  | "committed"
  | "landing"
  | "delivered"
  | "ended"
  | "note"
  | "finished";

/** Something that happened, for whoever watches. */
export interface DispatchEvent {
  readonly at: string;
  readonly kind: EventKind;
  readonly worker: number | null;
  readonly issueId: Ulid | null;
  readonly text: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** What became of one issue. */
export interface IssueOutcome {
  readonly issueId: Ulid;
  readonly shortId: string;
  readonly title: string;
  readonly end: IssueEnd;
  readonly worker: number;
  readonly attempts: number;
  readonly branch: string | null;
  /** On the target, where it landed. */
  readonly landed: string | null;
  readonly pullRequest: string | null;
  readonly why: string | null;
  readonly hint: string | null;
  readonly snapshotId: string | null;
  readonly log: string | null;
  readonly costUsd: number | null;
  readonly durationMs: number;
}

export interface DispatchReport {
  readonly runId: Ulid;
  readonly issues: readonly IssueOutcome[];
  /** Claims that no other machine knows of yet. */
  readonly offlineClaims: number;
  readonly costUsd: number | null;
  readonly durationMs: number;
  /** What is available still. */
  readonly left: number;
  /** Why it ended before everything was done; null where nothing was left to do. */
  readonly endedBy: "interrupt" | "drain" | "limit" | "cost" | null;
  /** What has stopped a worker for good. */
  readonly stopped: CotenantError | null;
}
