import { singleOf, type Value } from "./words";

/** Something that a command line may write, as the shell would name it. */
export interface Written {
  readonly value: Value;
  /** `into`: below this directory, under the names of these. */
  readonly names?: readonly Value[];
  readonly mode: "take" | "look";
}

export function take(value: Value): Written {
  return { value, mode: "take" };
}

export function look(value: Value): Written {
  return { value, mode: "look" };
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
