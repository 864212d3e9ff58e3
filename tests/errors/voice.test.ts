import { describe, expect, it } from "vitest";
import { ERRORS } from "../../src/errors/registry";
import { filesBelow } from "../house/source";

/** Errors that have a constructor of their own: the message, and then the hint. */
const NAMED =
  /\b(?:usage|policy|notFound|limit|conflict|protected|permission|git)Error\(\s*(["`])((?:\\.|(?!\1)[\s\S])*)\1(?:,\s*(["`])((?:\\.|(?!\3)[\s\S])*)\3)?/g;

/** The message and the hint of every error in the code, as they are written there. */
function wordsIn(text: string): string[] {
  const thrown = [
    ...text.matchAll(/(?:CotenantError|refuse)\(\s*"E_[A-Z_]+",\s*(["`])((?:\\.|(?!\1)[\s\S])*)\1/g),
    ...text.matchAll(NAMED),
  ];
  const named = [...text.matchAll(NAMED)].map(([, , , quote, hint]) => ["", quote, hint]);
  const hints = [...text.matchAll(/\bhint:\s*(["`'])((?:\\.|(?!\1)[\s\S])*)\1/g)];
  return [...thrown, ...hints, ...named.filter(([, , hint]) => hint !== undefined)].map(
    ([, , words]) => words!,
  );
}

/** Names that are written with a capital wherever they stand. */
const NAMES = /^(?:Git|HEAD|TOML)\b/;

function faultsIn(written: string): string[] {
  // What is put in at run time is somebody else's word.
  const words = written.replace(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, "x");
  const faults: string[] = [];
  if (/^[A-Z]/.test(words) && !NAMES.test(words)) faults.push("begins with a capital");
  if (words.includes("!")) faults.push("shouts");
  if (/[a-z]\.$/.test(words)) faults.push("ends in a full stop");
  if (/\b(?:invalid|illegal|failed to|unable to|error|sorry|oops)\b/i.test(words))
    faults.push("sounds like a machine");
  if (/(?:rm -rf|git reset --hard|git push --force|git clean)/.test(words))
    faults.push("suggests destruction");
  return faults.map((fault) => `${fault}: ${written}`);
}

describe("errors read as one voice", () => {
  const all = filesBelow("src")
    .filter(({ path }) => path.endsWith(".ts"))
    .flatMap(({ text }) => wordsIn(text));

  it("in every message and hint of the code", () => {
    expect(all.length).toBeGreaterThan(120);
    expect(all.flatMap(faultsIn)).toEqual([]);
  });

  it("in the registry, where a hint is always there", () => {
    const hints = Object.values(ERRORS).map(({ hint }) => hint);
    expect(hints.filter((hint) => hint.length < 10)).toEqual([]);
    expect(hints.flatMap(faultsIn)).toEqual([]);
    for (const { meaning } of Object.values(ERRORS)) expect(meaning).toMatch(/^[A-Z].*\.$/s);
  });

  it("and would be noticed if they did not", () => {
    const text = 'throw new CotenantError("E_USAGE", "Invalid thing.", { hint: "Do it now!" });';
    expect(wordsIn(text)).toEqual(["Invalid thing.", "Do it now!"]);
    expect(wordsIn(text).flatMap(faultsIn)).toHaveLength(5);
    expect(wordsIn('throw usageError("Invalid thing.", `Do it now!`);')).toEqual([
      "Invalid thing.",
      "Do it now!",
    ]);
  });
});
