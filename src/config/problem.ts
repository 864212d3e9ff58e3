import { CotenantError } from "../errors/cotenant-error";

/** One thing that is wrong in one place. */
export interface ConfigProblem {
  readonly message: string;
  /** A file's path, a variable's name, or "command line". */
  readonly place: string;
  readonly line: number | null;
  readonly key: string | null;
  readonly nearest: string | null;
}

/** All of them travel with the error; the first one is the one people read. */
export function configError(problems: readonly ConfigProblem[]): CotenantError {
  const [first] = problems;
  if (first === undefined) throw new Error("no problem, no error");
  const where = first.line === null ? first.place : `${first.place}:${first.line}`;
  const others = problems.length === 1 ? "" : ` (and ${problems.length - 1} more)`;
  return new CotenantError("E_CONFIG", `${where}: ${first.message}${others}`, {
    hint: hintFor(first, where),
    data: {
      file: first.place,
      line: first.line,
      key: first.key,
      nearest: first.nearest,
      problems: problems.map((problem) => ({ ...problem })),
    },
  });
}

function hintFor(problem: ConfigProblem, where: string): string {
  if (problem.nearest !== null) return `did you mean ${problem.nearest}?`;
  return problem.key === null ? `mend ${where}` : `mend or remove ${problem.key} in ${where}`;
}
