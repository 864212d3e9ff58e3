import type { Surroundings, Workspace } from "../../coordinator/workspace";
import type { Terminal } from "../terminal/terminal";

/** Kinds of things that a shell can complete. */
export type Completes =
  | "agent"
  | "directory"
  | "gate"
  | "issue"
  | "key"
  | "lease"
  | "path"
  | "ref"
  | "resource"
  | "setting"
  | "setting-value"
  | "worktree";

/** One option of a command. Without `value` it is a switch. */
export interface Flag {
  readonly meaning: string;
  /** What to write for its value in help texts, for example `<secs>`. */
  readonly value?: string;
  readonly many?: boolean;
  /** For help only: the command says by itself what is missing. */
  readonly isRequired?: boolean;
  /** All values that it takes. */
  readonly choices?: readonly string[];
  /** What its value names, for completion in a shell. */
  readonly completes?: Completes;
  /** For an old name: what to use instead. */
  readonly insteadUse?: string;
}

export interface Parsed {
  /** What follows the command's own words. */
  readonly words: readonly string[];
  text(flag: string): string | undefined;
  texts(flag: string): readonly string[];
  has(flag: string): boolean;
  /** A whole number, or a usage error that says which flag. */
  whole(flag: string): number | undefined;
}

/** What a command has to say, for people and for programs. */
export interface Output {
  readonly data: Readonly<Record<string, unknown>>;
  readonly text: string;
  /** For commands that end in something other than success or an error, such as `demo`. */
  readonly exit?: number;
  /** It has been printed already, as it came. */
  readonly isStreamed?: boolean;
}

export interface Context {
  readonly terminal: Terminal;
  readonly json: boolean;
  readonly quiet: boolean;
  /** Where `cotenant` is, for commands that start it again. */
  readonly program: string;
  /** For commands that work also where no repository can be opened. */
  surroundings(): Surroundings;
  /** Opens the repository around the caller; the same one each time. */
  workspace(): Promise<Workspace>;
  /** Progress and side remarks, on standard error. */
  note(line: string): void;
}

/** Says something that is not a command's output: plain, or as the one JSON document. */
export type Tell = (text: string, data?: Readonly<Record<string, unknown>>) => void;

export interface Command {
  /** The words that follow its name, such as `<issue> [<gate>]`: help makes its usage line of them and of the flags. */
  readonly positional?: string;
  /** Where it has several forms: the usage line as it is, without the program's name. */
  readonly usage?: string;
  readonly about: string;
  readonly flags: Readonly<Record<string, Flag>>;
  readonly examples: readonly string[];
  /** How many words may follow. */
  readonly words: {
    readonly min: number;
    readonly max: number;
    /** What is missing where there are too few, for example "an issue". */
    readonly what?: string;
    /** They are for another program, and follow `--`: whatever stands before it is a mistake. */
    readonly behindDashes?: boolean;
    /** Where a word that is too many belongs. */
    readonly instead?: string;
  };
  /** What those words name, for completion in a shell: kinds of things, or the words themselves. */
  readonly completes?: readonly (Completes | { readonly choices: readonly string[] })[];
  /** Whether own leases that are about to run out are worth a remark afterwards. */
  readonly remindsOfExpiry?: boolean;
  /** Agents may not run it, unless a policy says so: whoever has not said who they are is told how a person does. */
  readonly isForPeople?: boolean;
  /** Works also where the configuration is broken. */
  readonly mendsConfig?: boolean;
  /** Enforces rules, and so goes by what a broken configuration last said. */
  readonly enforcesConfig?: boolean;
  /** Hooks that are gone are its own subject: it is not for the program to put them back first. */
  readonly leavesHooks?: boolean;
  /** A last look at the raw arguments, where the grammar is more than flags and words. */
  prepare?(args: readonly string[]): string[];
  run(context: Context, parsed: Parsed): Promise<Output>;
}

/** Flags that every command understands. */
export const COMMON_FLAGS: Readonly<Record<string, Flag>> = {
  json: { meaning: "print one JSON document" },
  "agent-id": {
    value: "<type:name>",
    completes: "agent",
    meaning: "who is asking (else COTENANT_AGENT_ID, harness, agent.toml)",
  },
  session: {
    value: "<id>",
    meaning: "which run of the agent (else COTENANT_SESSION_ID, harness, 'default')",
  },
  "allow-network-fs": { meaning: "go on although locks cannot be trusted on this file system" },
  quiet: { meaning: "print nothing on success but what was asked for" },
  help: { meaning: "show this help" },
};
