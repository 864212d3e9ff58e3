import { isGiven, optionValues } from "./arguments";
import { singleOf, type Value } from "./words";

/** A command that another program was told to run. */
export interface Unwrapped {
  /** Empty where it runs none. */
  readonly words: readonly Value[];
  /** Where it is run, unless where its caller stands. */
  readonly directory?: Value;
  /** Variables that it gets: `NAME=value`. */
  readonly assigned?: readonly Value[];
}

/** What is run by a program that only runs another; null for any other program. */
export function unwrapped(name: string, args: readonly Value[]): Unwrapped | null {
  switch (name) {
    case "sudo":
    case "doas":
      return withVariables(
        operandsFrom(args, ["-u", "-g", "-h", "-p", "-C", "-D", "--user", "--chdir"]),
        optionValues(args, ["-D", "--chdir"])[0],
      );
    case "env":
      return withVariables(
        operandsFrom(args, ["-u", "-C", "-S", "--unset", "--chdir"]),
        optionValues(args, ["-C", "--chdir"])[0],
      );
    case "timeout":
      return { words: operandsFrom(args, ["-s", "-k", "--signal", "--kill-after"]).slice(1) };
    case "nice":
    case "ionice":
      return { words: operandsFrom(args, ["-n", "-c", "-p"]) };
    case "flock": {
      const rest = operandsFrom(args, ["-w", "-E", "--timeout", "--wait", "--conflict-exit-code"]).slice(1);
      return { words: singleOf(rest[0] ?? null) === "-c" ? [["sh"], ...rest] : rest };
    }
    case "xargs":
      return { words: withInput(args) };
    case "command":
      return { words: isGiven(args, "-v") || isGiven(args, "-V") ? [] : operandsFrom(args, []) };
    case "nohup":
    case "setsid":
    case "stdbuf":
    case "builtin":
    case "exec":
    case "time":
    case "chronic":
    case "busybox":
      return { words: operandsFrom(args, ["-a", "-o", "-e", "-i"]) };
    default:
      return null;
  }
}

/** From the first word on that is no option: what follows belongs to the inner command, options and all. */
function operandsFrom(args: readonly Value[], valued: readonly string[]): readonly Value[] {
  for (let i = 0; i < args.length; i++) {
    const text = singleOf(args[i]!);
    if (text === "--") return args.slice(i + 1);
    if (text === null || !text.startsWith("-")) return args.slice(i);
    if (valued.includes(text)) i++;
  }
  return [];
}

function withVariables(args: readonly Value[], directory: Value | undefined): Unwrapped {
  const at = args.findIndex((arg) => !/^[A-Za-z_]\w*=/.test(singleOf(arg) ?? ""));
  const first = at === -1 ? args.length : at;
  return {
    words: args.slice(first),
    assigned: args.slice(0, first),
    ...(directory === undefined ? {} : { directory }),
  };
}

/** What `xargs` reads cannot be told: it is put where `-I` says, else at the end. */
function withInput(args: readonly Value[]): readonly Value[] {
  const inner = operandsFrom(args, ["-n", "-I", "-P", "-d", "-L", "-s", "-a", "-E", "--max-args"]);
  const own = args.slice(0, args.length - inner.length);
  const [mark] = optionValues(own, ["-I", "--replace"]).map(singleOf);
  if (mark === undefined) return inner.length === 0 ? inner : [...inner, null];
  return inner.map((value, i) =>
    i > 0 && (mark === null || singleOf(value)?.includes(mark) !== false) ? null : value,
  );
}
