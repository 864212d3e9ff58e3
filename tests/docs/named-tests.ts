import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../house/source";

/** A test as a page names it: `- `tests/….test.ts`: "title"`. */
export interface NamedTest {
  readonly file: string;
  readonly title: string;
}

const NAMED = /^- `(tests\/[^`]+\.test\.ts)`: "(.+)"$/gm;

export function testsIn(markdown: string): NamedTest[] {
  return [...markdown.matchAll(NAMED)].map(([, file, title]) => ({ file: file!, title: title! }));
}

/** Lines that only look as if they named one. */
export function mentionsIn(markdown: string): number {
  return [...markdown.matchAll(/^- .*\btests\/.*$/gm)].length;
}

/** Titles as they stand in a test file, of tests and suites, whatever comes between the name and its title. */
export function titlesIn(source: string): string[] {
  const calls =
    /\b(?:it|test|describe)\b[\w.]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?\(\s*(["'`])((?:\\.|(?!\1).)*)\1/gs;
  return [...source.matchAll(calls)].map(([, , title]) => title!.replace(/\\(.)/g, "$1"));
}

export function problemWith({ file, title }: NamedTest): string | null {
  const path = join(ROOT, file);
  if (!existsSync(path)) return `${file} does not exist`;
  const isThere = titlesIn(readFileSync(path, "utf8")).includes(title);
  return isThere ? null : `${file} has no test "${title}"`;
}
