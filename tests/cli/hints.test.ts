import { SyntaxKind } from "typescript/unstable/ast";
import { describe, expect } from "vitest";
import { COMMANDS } from "../../src/cli/commands";
import { commandHelp } from "../../src/cli/help";
import { withWay } from "../../src/cli/hints";
import { CotenantError } from "../../src/errors/cotenant-error";
import { ERRORS } from "../../src/errors/registry";
import { filesBelow, tokensOf } from "../house/source";
import { doubledIn, FILLED_IN, linesIn, optionsMissing, wrongLinesIn, wrongWith } from "../support/hints";
import { oneIn } from "../support/one-in";

const it = oneIn(8);

/** Every text that the program can print, with a word in place of what it fills in. */
function textsOf(source: string): string[] {
  const texts: string[] = [];
  const open: string[] = [];
  for (const { kind, value } of tokensOf(source)) {
    if (kind === SyntaxKind.StringLiteral || kind === SyntaxKind.NoSubstitutionTemplateLiteral)
      texts.push(value);
    if (kind === SyntaxKind.TemplateHead) open.push(value);
    if (kind === SyntaxKind.TemplateMiddle) open.push(`${open.pop()}${FILLED_IN}${value}`);
    if (kind === SyntaxKind.TemplateTail) texts.push(`${open.pop()}${FILLED_IN}${value}`);
  }
  return texts;
}

describe("every command line that is shown parses", () => {
  it("in messages and hints of the sources", async () => {
    const wrong: string[] = [];
    for (const { path, text } of filesBelow("src"))
      for (const each of path.endsWith(".ts") ? textsOf(text) : [])
        for (const line of await wrongLinesIn(each)) wrong.push(`${path}: ${line}`);
    expect(wrong).toEqual([]);
  });

  it("in the documentation", async () => {
    const wrong: string[] = [];
    const pages = [...filesBelow("docs"), ...filesBelow(".").filter(({ path }) => !path.includes("/"))];
    for (const { path, text } of pages.filter(({ path: name }) => name.endsWith(".md")))
      for (const line of await wrongLinesIn(text)) wrong.push(`${path}: ${line}`);
    expect(wrong).toEqual([]);
  });

  it("in the examples of every command's help", async () => {
    const wrong: string[] = [];
    for (const { load } of Object.values(COMMANDS))
      for (const example of (await load()).examples) {
        const at = example.indexOf("cotenant ");
        const why = await wrongWith({ line: example.slice(at + "cotenant ".length), isMarked: true });
        if (why !== null) wrong.push(`${example}: ${why}`);
      }
    expect(wrong).toEqual([]);
  });

  it("with --reason where it is refused without one", async () => {
    const isRefused = (line: string) =>
      /^(?:claim force-evict|lock steal) (?!--help|<|…)/.test(line) && !line.includes("--reason");
    const shown = [...filesBelow("src"), ...filesBelow("docs")].flatMap(({ path, text }) =>
      (path.endsWith(".ts") ? textsOf(text) : [text]).flatMap((each) => linesIn(each)),
    );
    expect(shown.map(({ line }) => line).filter(isRefused)).toEqual([]);
    expect(isRefused("claim force-evict 7x3k")).toBe(true);
  });

  it("and none runs as printed where somebody has to say something first: a shell takes no <why>", () => {
    const isTakenAsIs = (text: string) => /(?:--[a-z-]+|-m) ["'][….]+["']/.test(text);
    expect(isTakenAsIs('cotenant pause --reason "…"')).toBe(true);
    const wrong = filesBelow("src")
      .filter(({ path }) => path.endsWith(".ts"))
      .flatMap(({ path, text }) =>
        textsOf(text)
          .filter(isTakenAsIs)
          .map((each) => `${path}: ${each}`),
      );
    expect(wrong).toEqual([]);
  });

  it("and a wrong one would be noticed", async () => {
    const wrong = [
      "'cotenant lock aquire x'",
      "run: cotenant lock acquire x --wiat",
      "wait for it: cotenant worktree create work/x --wait --timeout 300",
      "'cotenant claim release's hint is fine, 'cotenant claim release --reason' is not",
      "`cotenant status a b c`",
    ];
    for (const text of wrong) expect(await wrongLinesIn(text), text).toHaveLength(1);
    const fine = [
      "run 'cotenant lock acquire <file>', or 'cotenant claim …'",
      "claim it: cotenant claim acquire XXXX (enforce.push = still_held)",
      "cotenant lock: a sentence about it",
    ];
    for (const text of fine) expect(await wrongLinesIn(text), text).toEqual([]);
    expect(linesIn("see /usr/bin/cotenant status")).toEqual([]);
  });
});

describe("nothing is said twice in a row", () => {
  it("in the help of any command", async () => {
    for (const [name, { load }] of Object.entries(COMMANDS))
      expect(doubledIn(commandHelp(await load(), name)), name).toEqual([]);
  });

  it("in anything that a test makes the program print, which would be noticed", () => {
    for (const text of [
      "a label; may be repeated (may be repeated)",
      "snapshot 01X is damaged: snapshot 01X is damaged: object 7 is missing",
    ])
      expect(doubledIn(text), text).toHaveLength(1);
    expect(doubledIn("src/a.ts is held by agent:a; src/b.ts is held by agent:b")).toEqual([]);
  });
});

describe("a hint that names options", () => {
  it("is for the command that has them: the registry's are for every command", async () => {
    for (const [code, { hint }] of Object.entries(ERRORS)) {
      if (code === "E_PROTECTED_REF") continue;
      expect(await optionsMissing(["status"], hint), `${code}: ${hint}`).toEqual([]);
    }
  });

  it("is for the command that has them: what each could do about it itself, too", async () => {
    for (const [name, { load }] of Object.entries(COMMANDS))
      for (const code of ["E_LOCK_CONFLICT", "E_QUEUED", "E_WAIT_TIMEOUT"] as const) {
        const { hint } = withWay(new CotenantError(code, "x"), await load()) as CotenantError;
        expect(await optionsMissing(name.split(" "), hint), `${name}: ${hint}`).toEqual([]);
      }
  });

  it("is checked wherever a test runs a command", async () => {
    expect(await optionsMissing(["worktree", "create", "x"], "wait with --wait --timeout 300")).toEqual([
      "--wait",
      "--timeout",
    ]);
    expect(await optionsMissing(["lock", "acquire", "x"], "wait with --wait --timeout 300")).toEqual([]);
    expect(
      await optionsMissing(["status"], "run 'git restore --staged x', or cotenant publish --push"),
    ).toEqual([]);
  });
});
