import type { HarnessName } from "../../../identity/harness";
import type { Talk, ToolCall } from "./conversation";

/** Where a program runs: everything it sees of the machine. */
export interface TrialMachine {
  readonly home: string;
  readonly repo: string;
  /** Of the scripted model, on loopback. */
  readonly port: number;
}

/** What a program is started with for one prompt, besides its own name. */
export interface HeadlessStart {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** The harness's own tools for files, as its model would call them. Paths are absolute. */
export interface FileTools {
  write(file: string, content: string): ToolCall;
  /** Several calls where a file has to be read first. Answers what the model is told about the edit. */
  edit(talk: Talk, file: string, from: string, to: string): Promise<string>;
}

/** How to run a harness's program without a person, an account or a network. */
export interface HeadlessProgram {
  /** As `agent install` calls it. */
  readonly harness: HarnessName;
  /** As it is called on the PATH. */
  readonly command: string;
  /** Where its own installer puts it, below the home of a person, for those who have not changed their PATH. */
  readonly places: readonly string[];
  /** Writes what it needs in an empty home. */
  prepare(scene: TrialMachine): void;
  /** `isTrusting`: with whatever makes it run the hooks of this project without asking. */
  start(scene: TrialMachine, prompt: string, isTrusting: boolean): HeadlessStart;
  readonly tools: FileTools;
}
