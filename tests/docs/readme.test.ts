import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { describe, expect, it } from "vitest";
import { LISTED } from "../../src/cli/lookup";
import { ROOT } from "../house/source";
import { scratch } from "../support/scratch";
import { blocksOf, commandsOf, difference, namesIn, type Ran, rename } from "./console";

const README = readFileSync(join(ROOT, "README.md"), "utf8");
const packageJson: { scripts: Record<string, string> } = JSON.parse(
  readFileSync(join(ROOT, "package.json"), "utf8"),
);
const NPM = /^npm (?:run )?([a-z:-]+)$/;
const PATIENCE_MS = 180_000;

/** A repository where the document's own would be, as far as its output can tell. */
function makeRepository(): string {
  const repository = join(scratch("cotenant-readme"), "shop");
  mkdirSync(join(repository, "src"), { recursive: true });
  writeFileSync(join(repository, "src/app.ts"), "export {};\n");
  for (const args of [
    ["init", "-q"],
    ["add", "."],
    ["commit", "-q", "-m", "Start"],
  ]) {
    expect(spawnSync("git", args, { cwd: repository, encoding: "utf8" }).stderr).toBe("");
  }
  return repository;
}

/** As if it were one shell: what one command exports, the next one sees. */
class Shell {
  readonly #cwd: string;
  #state = "";

  constructor(cwd: string) {
    this.#cwd = cwd;
  }

  run(command: string): Ran {
    const script = `${this.#state}\n{ ${command}\n} 2>&1\nstatus=$?\nexport -p >&3\nexit $status\n`;
    const ended = spawnSync("bash", ["-c", script], {
      cwd: this.#cwd,
      encoding: "utf8",
      env: { ...process.env, PATH: [join(ROOT, "bin"), process.env["PATH"]].join(delimiter) },
      stdio: ["ignore", "pipe", "inherit", "pipe"],
      timeout: PATIENCE_MS,
    });
    if (ended.error !== undefined) throw ended.error;
    this.#state = ended.output[3] ?? "";
    const text = ended.stdout.replaceAll(this.#cwd, "/srv/shop").replace(/\n$/, "");
    return { exit: ended.status ?? -1, answer: text === "" ? [] : text.split("\n") };
  }
}

describe("README", () => {
  it("has only commands that run and answer as it says", { timeout: PATIENCE_MS }, () => {
    expect(existsSync(join(ROOT, "dist/cli.cjs")), "run 'node scripts/build.mjs' first").toBe(true);
    const commands = commandsOf(README);
    expect(commands.length).toBeGreaterThan(10);
    const shell = new Shell(makeRepository());
    const names = new Map<string, string>();
    for (const { line, command, exit, answer } of commands) {
      const where = `README.md:${line}: ${command}`;
      const script = NPM.exec(command)?.[1];
      if (script !== undefined) {
        expect(Object.keys(packageJson.scripts), where).toContain(script);
        continue;
      }
      const ran = shell.run(rename(command, names));
      expect(ran.exit, `${where}\n${ran.answer.join("\n")}`).toBe(exit);
      for (const [shown, given] of namesIn(answer, ran.answer)) names.set(shown, given);
      const shown = answer.map((text) => rename(text, names));
      expect(difference(shown, ran.answer), where).toBeNull();
    }
  });

  it("names npm start and npm test, which exist", () => {
    const npm = commandsOf(README).flatMap(({ command }) => NPM.exec(command)?.[1] ?? []);
    expect(npm).toEqual(["start", "test"]);
    for (const script of npm) {
      const file = /^node (\S+)$/.exec(packageJson.scripts[script] ?? "")?.[1] ?? "";
      expect(existsSync(join(ROOT, file)), `${script}: ${file}`).toBe(true);
    }
  });

  it("has a library example that runs", { timeout: PATIENCE_MS }, () => {
    const [example, ...others] = blocksOf(README, "js");
    expect(others).toEqual([]);
    const repository = makeRepository();
    mkdirSync(join(repository, "node_modules"));
    symlinkSync(ROOT, join(repository, "node_modules/cotenant"));
    writeFileSync(join(repository, "example.mjs"), example!.text);
    const ended = spawnSync(process.execPath, ["example.mjs"], { cwd: repository, encoding: "utf8" });
    expect(ended).toMatchObject({ status: 0, stdout: "file:src/app.ts 1\ndir:docs 2\n", stderr: "" });
    const left = spawnSync(join(ROOT, "bin/cotenant"), ["lock", "status"], {
      cwd: repository,
      encoding: "utf8",
    });
    expect(left.stdout).toBe("no locks\n");
  });

  it("lists exactly the commands that there are", () => {
    const help = spawnSync(join(ROOT, "bin/cotenant"), ["help"], { encoding: "utf8" }).stdout;
    // The verbs of a group stand below it.
    const rows = [...help.matchAll(/^ {2}(\w+) +.*(?:\n {6,}(\S.*))?$/gm)].map(([, name, verbs]) => ({
      name: name!,
      verbs,
    }));
    const there = [...README.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell]) =>
      [...cell!.matchAll(/`([^`]+)`/g)].map(([, code]) => code!),
    );
    const expected = rows.flatMap(({ name, verbs }) => [
      // Some groups are commands themselves.
      ...(verbs === undefined || LISTED.includes(name) ? [name] : []),
      ...(verbs === undefined ? [] : [`${name} ${verbs}`]),
    ]);
    expect(expected.length).toBeGreaterThan(5);
    expect([...there].sort()).toEqual([...expected].sort());
  });
});

describe("the comparison", () => {
  const shown = ["acquired file:a, 10m00s, until 2026-11-15T09:32:31.528Z", "…"];

  it("takes ids, times and widths of columns for what they are", () => {
    const given = ["acquired   file:a, 9m59s, until 2031-01-01T00:00:00.000Z", "more", "and more"];
    expect(difference(shown, given)).toBeNull();
    expect(difference(["x (wt:0123abcd), #3"], ["x (wt:89abcdef), #3"])).toBeNull();
    expect(difference(['{"ok":true,…'], ['{"ok":true,"data":{}}'])).toBeNull();
  });

  it.each([
    [["acquired file:b, 10m00s, until 2026-11-15T09:32:31.528Z"]],
    [["something first", "acquired file:a, 10m00s, until 2026-11-15T09:32:31.528Z"]],
    [[]],
  ])("sees a lie: %j", (given) => {
    expect(difference(shown, given)).toContain("but it answers");
  });

  it("sees a line too many, and a token that is another", () => {
    expect(difference(["released"], ["released", "warning"])).not.toBeNull();
    expect(difference(["token 1"], ["token 2"])).not.toBeNull();
  });

  it("reads commands, statuses and answers", () => {
    const text = "# t\n```console\n$ a --b  # exits 7\nout\n$ c\n```\n```sh\n$ not this\n```\n";
    expect(commandsOf(text)).toEqual([
      { line: 3, command: "a --b  # exits 7", exit: 7, answer: ["out"] },
      { line: 5, command: "c", exit: 0, answer: [] },
    ]);
  });
});
