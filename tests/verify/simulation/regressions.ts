import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../bundle";
import { STORY_VERSION, type Story } from "./story";

/** A story that once broke a promise: `tests/verify/regressions/<name>.json`. */
export interface Regression {
  readonly name: string;
  /** What it showed, on the commit before its fix. */
  readonly showed: string;
  readonly story: Story;
}

const FOLDER = join(ROOT, "tests/verify/regressions");

/** Every one that is kept. Other layers keep theirs in the same folder, in other forms. */
export function regressions(): Regression[] {
  const found: Regression[] = [];
  for (const file of readdirSync(FOLDER).sort()) {
    if (!file.endsWith(".json")) continue;
    const { showed, story } = JSON.parse(readFileSync(join(FOLDER, file), "utf8")) as Partial<Regression>;
    if (story?.events === undefined) continue;
    if (showed === undefined || story.version !== STORY_VERSION)
      throw new Error(`${file}: a story of version ${story.version}, without a word of what it showed`);
    found.push({ name: file.replace(/\.json$/, ""), showed, story });
  }
  return found;
}
