import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { readExports } from "../../src/daemon/shell-environment";
import { Prng } from "../../testing/simulator/prng";

const SHELLS: readonly (readonly [string, readonly string[]])[] = [
  ["dash", ["dash"]],
  ["bash", ["bash"]],
  ["bash as sh", ["bash", "--posix"]],
];

/** What a shell that was started with this says of its environment. */
function exported([shell = "", ...first]: readonly string[], env: Record<string, string>): string {
  return execFileSync(shell, [...first, "-c", "export -p"], {
    encoding: "utf8",
    // Bash reads its start-up files where a socket is its standard input.
    stdio: ["ignore", "pipe", "inherit"],
    env: { PATH: process.env["PATH"]!, ...env },
  });
}

const ODD: Readonly<Record<string, string>> = {
  EMPTY: "",
  QUOTES: `it's "quoted" and \`ticked\``,
  BACK: "a\\b\\\\c\\n",
  DOLLARS: `$HOME $${"{x}"} $(id) $'a'`,
  LINES: "one\ntwo\n\nexport NOT_ONE='x'\nthree",
  BLANKS: "  two  \t tabs\t",
  CONTROLS: "\x01\x1b[31m\x7f\r",
  WIDE: "ünïcödé ✓ 漢字 😀",
  GLOBS: "* ? [a-z] {a,b} ~ # ! ; & | < > ( )",
  EQUALS: "a=b=c",
  JSON: '{"a":["b\\"c"]}',
};

describe.each(SHELLS)("the environment of %s", (_, shell) => {
  it("is read as it is, whatever the values are, in any locale", () => {
    for (const LC_ALL of ["C", "C.UTF-8"])
      expect(readExports(exported(shell, { ...ODD, LC_ALL })), LC_ALL).toMatchObject(ODD);
  });

  it("is read as it is, for any values", () => {
    const seed = Number(process.env["TEST_SEED"] ?? Date.now() % 100_000);
    const chance = new Prng(seed, "environments");
    const letters = [..."ab'\"\\$`\n\t =;#!*~{}()<>|&%\x01\x1b\x7fé✓😀", "\\n", "$'", "\\'", "''", '""'];
    for (let round = 0; round < 40; round++) {
      const env: Record<string, string> = {};
      for (let i = 0; i < 8; i++) {
        let value = "";
        for (let n = chance.below(12); n > 0; n--) value += chance.pick(letters);
        env[`V${i}`] = value;
      }
      expect(readExports(exported(shell, env)), `seed ${seed}, round ${round}`).toMatchObject(env);
    }
  });

  it("has nothing of what was never set", () => {
    const [program = "", ...first] = shell;
    const text = execFileSync(program, [...first, "-c", "export NEVER; export -p"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
    });
    expect(text).toContain("NEVER");
    expect(readExports(text)).not.toHaveProperty("NEVER");
  });
});

describe("what is no environment", () => {
  it.each([
    ["words", "hello\n"],
    ["a quote without its end", "export A='x\n"],
    ["a command", 'export A="$(id)"\n'],
    ["a command in other quotes", "export A=`id`\n"],
    ["two commands", "export A='x'; id\n"],
    ["bytes by number", "export A=$'\\377'\n"],
    ["a name that is none", "export A-B='x'\n"],
    ["nothing after a backslash", "export A=x\\"],
  ])("is not taken for one: %s", (_, text) => {
    expect(readExports(text)).toBeNull();
  });

  it("and names of what objects inherit are names like any other", () => {
    expect(readExports("export __proto__='x'\nexport constructor='y'\n")).toEqual(
      Object.assign(Object.create(null), JSON.parse('{"__proto__":"x","constructor":"y"}')),
    );
  });
});
