import { singleOf, type Value } from "./words";

/** Something that a command line may write, as the shell would name it. */
export interface Written {
  readonly value: Value;
  /** `into`: below this directory, under the names of these. */
  readonly names?: readonly Value[];
  readonly mode: "take" | "look";
  /** Of a command that touches what everybody in a checkout shares; it has no path of its own. */
  readonly everybody?: Everybody;
}

/** A command that moves HEAD, the index, the stash or every file of a worktree at once. */
export interface Everybody {
  /** As far as it can be read. */
  readonly command: string;
  /** The branch that it makes, and where that, or what is checked out, starts; null where it cannot be told. */
  readonly branch: string | null;
  readonly base: string | null;
}

export function take(value: Value): Written {
  return { value, mode: "take" };
}

export function look(value: Value): Written {
  return { value, mode: "look" };
}

export function everybody(branch: Value = null, base: Value = null): Written {
  return {
    value: [],
    mode: "look",
    everybody: { command: "", branch: singleOf(branch), base: singleOf(base) },
  };
}

/** What is no option, nor the value of one of `valued`. */
export function operands(args: readonly Value[], valued: readonly string[] = []): Value[] {
  const found: Value[] = [];
  let isOver = false;
  for (let i = 0; i < args.length; i++) {
    const text = args[i] === null ? null : singleOf(args[i]!);
    if (!isOver && text === "--") isOver = true;
    else if (!isOver && text !== null && text.startsWith("-") && text !== "-") {
      if (valued.includes(text)) i++;
    } else found.push(args[i]!);
  }
  return found;
}

export function isGiven(args: readonly Value[], option: string): boolean {
  return args.some((arg) => singleOf(arg) === option);
}

/** Whether a letter is among the short options, as in `-rf`. */
export function hasLetter(args: readonly Value[], letter: string): boolean {
  return args.some((arg) => new RegExp(`^-[a-zA-Z]*${letter}`).test(singleOf(arg) ?? ""));
}
