import type { ToolCall } from "../../../src/features/harnesses/real-canary/conversation";
import type {
  FileTools,
  HeadlessStart,
  TrialMachine,
} from "../../../src/features/harnesses/real-canary/headless";
import type { ModelServer } from "../../../src/features/harnesses/real-canary/model-server";
import type { HarnessName } from "../../../src/identity/harness";

/** A package of the npm registry, at the version that was last looked at. */
export interface Package {
  readonly name: string;
  readonly version: string;
}

/** A program whose packages are there. */
export interface Installed {
  /** The folder with its `node_modules`. */
  readonly folder: string;
  /** Of its first package. */
  readonly version: string;
}

/** A scene with a program of the registry in it. */
export interface StageScene extends TrialMachine {
  readonly installed: Installed;
}

/** The harness's other tools, as its model would call them. */
export interface Tools extends FileTools {
  shell(command: string, scene: TrialMachine): ToolCall;
  /** A command that goes on after its call has returned. */
  background(command: string, scene: TrialMachine): ToolCall;
  /** A subagent with this prompt; null where there are none. */
  delegate: ((prompt: string) => ToolCall) | null;
  /** What the model does until a subagent is done that runs beside it; null where the call itself waits. */
  await: ((told: string) => ToolCall) | null;
  /** Goes into a worktree of its own, and out of it so that it is removed; only where hooks make and remove worktrees. */
  readonly worktrees?: { enter(name: string): ToolCall; leave(): ToolCall };
}

/** How far the harness lets hooks of a project run. */
export interface Trust {
  /** What a person does to give it, for the table. */
  readonly by: string;
  /** Has the harness ask for it, where it does not by default. */
  demand?(scene: TrialMachine): void;
  give(scene: StageScene): Promise<void>;
}

/** One agent program of the npm registry, and how to run it without a person, an account or a network. */
export interface AgentProgram {
  /** In `--case` and in the results. */
  readonly name: string;
  readonly title: string;
  /** As `agent install` calls it. */
  readonly harness: HarnessName;
  readonly packages: readonly Package[];
  /** Its own server, for a program that speaks none of the usual protocols. */
  readonly serve?: (installed: Installed) => Promise<ModelServer>;
  /** The program and its first words. */
  launcher(installed: Installed): readonly string[];
  /** Writes what it needs in an empty home. */
  prepare(scene: TrialMachine): void;
  /** `isTrusting`: with whatever makes it run the hooks of this project without asking. */
  start(scene: StageScene, prompt: string, isTrusting: boolean): HeadlessStart;
  readonly tools: Tools;
  readonly trust: Trust | null;
  /** Where `agent install` writes, below the project. */
  readonly settings: string;
  /** Settings of a person's own, with a hook that runs `command`; in an odd style on purpose. */
  ownSettings(command: string): { readonly path: string; readonly text: string };
  /** Settings that hand every event of the harness to `command`, followed by the name of the event. */
  recordingSettings(command: string): { readonly path: string; readonly text: string };
  /** Whether it runs hooks of Claude Code's settings, too. */
  readonly readsClaudeSettings?: boolean;
  /** What the program itself leaves in a project. */
  readonly leavings?: RegExp;
}

/** The part of a package's name that says which machine a build is for. */
export const PLATFORM = `${process.platform}-${process.arch}`;
