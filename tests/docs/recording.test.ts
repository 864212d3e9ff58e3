import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { needTool } from "../house/need-tool";
import { ROOT } from "../house/source";

interface Said {
  readonly typed: string;
  readonly shown: string;
}

const { SESSION, record, picture } = (await import(`${ROOT}/scripts/recording.mjs`)) as {
  SESSION: readonly string[];
  record(): Said[];
  picture(session: readonly Said[]): string;
};

/** What changes from one run to the next. */
const plain = (text: string) =>
  text
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    .replace(/\b[0-9A-HJKMNP-TV-Z]{26}\b/g, "<id>")
    .replace(/wt:[0-9a-f]{8}/g, "<worktree>")
    .replace(/\b\d+m\d\ds left|\b\d+ s left/g, "<left>")
    .replace(/ {2,}/g, "  ");

it("the picture in the README is what a terminal shows today", () => {
  needTool("script");
  const session = record();
  expect(session.map(({ typed }) => typed)).toEqual(SESSION);
  expect(session.find(({ typed }) => typed.includes("--dir"))!.shown).toContain("E_LOCK_CONFLICT");
  expect(session.at(-1)!.shown).toContain("\x1b[");
  expect(plain(picture(session))).toBe(plain(readFileSync(join(ROOT, "docs/tour.svg"), "utf8")));
});
