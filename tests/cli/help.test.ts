import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { pageOf, verbsOf } from "../../src/cli/help";
import { GROUPS, LISTED } from "../../src/cli/lookup";
import { oneIn } from "../support/one-in";
import { run, runHere } from "../support/program";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { cotenant } from "../support/repo";

const it = oneIn(8);

/** All commands, as `cotenant help` lists them. */
async function commands(cwd: string): Promise<string[]> {
  const here = (...args: string[]) => runHere(args, { cwd, home: cwd });
  const { stdout } = await here("help");
  const found: string[] = [];
  let group = "";
  for (const row of stdout.split("\n").filter((line) => /^ {2}(?:\w| {6})/.test(line))) {
    const [name, ...words] = row.trim().split(/\s+/);
    // What a group is for stands on its line; its verbs stand below that.
    if (row.startsWith("   ")) found.push(...[name!, ...words].map((verb) => `${group} ${verb}`));
    else {
      group = name!;
      const help = (await here("help", name!)).stdout;
      if (!help.startsWith(`usage: cotenant ${name} <verb>`)) found.push(name!);
    }
  }
  return found;
}

describe("help", () => {
  const room = fs.mkdtempSync(path.join(os.tmpdir(), "cotenant-help-"));
  let all: string[];
  beforeAll(async () => {
    all = await commands(room);
  });
  afterAll(() => fs.rmSync(room, { recursive: true, force: true }));

  it("lists what there is", () => {
    expect(all).toEqual(
      expect.arrayContaining([
        ...["init", "status", "recover", "gc", "version"],
        ...["acquire", "renew", "heartbeat", "release", "transfer", "force-evict", "status", "list"].map(
          (verb) => `claim ${verb}`,
        ),
        ...["acquire", "renew", "release", "steal", "status", "gc"].map((verb) => `lock ${verb}`),
        ...["info", "list", "init"].map((verb) => `worktree ${verb}`),
        ...["create", "show", "list"].map((verb) => `issue ${verb}`),
      ]),
    );
  });

  it("lists nothing twice, and says of every group what it is for", async () => {
    expect(all.filter((name, i) => all.indexOf(name) !== i)).toEqual([]);
    const { stdout } = await runHere(["help"], { cwd: room, home: room });
    const rows = stdout.split("\n").filter((line) => /^ {2}\w/.test(line));
    const names = rows.map((row) => row.trim().split(" ")[0]!);
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
    for (const group of GROUPS)
      expect(stdout, group).toMatch(new RegExp(`^  ${group} +\\S+ .*\n {10,}${verbsOf(group)[0]}`, "m"));
    expect(stdout).toContain("renews leases of living sessions, answers hooks");
  });

  it("names the page of every command, and it is there", () => {
    for (const name of LISTED) {
      const page = pageOf(name);
      expect(page, name).not.toBeNull();
      expect(fs.existsSync(page!), `${name}: ${page}`).toBe(true);
    }
  });

  it("has a usage, an explanation and an example for every command, and every example parses", {
    timeout: 300_000,
  }, async () => {
    // Some read a file that a harness would have written.
    fs.writeFileSync(path.join(room, "event.json"), "{}");
    const startedGroups = new Set<string>();
    for (const name of all) {
      const asked = [...name.split(" "), "--help"];
      // Of every group, one in a process of its own.
      const { status, stdout } = await (startedGroups.has(asked[0]!)
        ? runHere(asked, { cwd: room, home: room })
        : cotenant(room, asked));
      startedGroups.add(asked[0]!);
      expect(status).toBe(0);
      expect(stdout).toMatch(new RegExp(`^usage: cotenant ${name}`));
      expect(stdout).toContain("--json");
      expect(stdout).toMatch(/\nmore: docs\/[A-Z]+\.md\n$/);
      expect(stdout.split("\n\n")[1]!.length).toBeGreaterThan(20);
      const examples = /^examples?:\n((?: {2}.+\n)+)/m.exec(stdout)?.[1]?.trimEnd().split("\n") ?? [];
      expect(examples.length, name).toBeGreaterThan(0);
      // As a shell reads them; with --help they are parsed and go no further.
      const script = `cotenant() { printf '%s\\n' "$@"; }\n${examples.join("\nprintf '\\0'\n")}`;
      const read = (await run(["/bin/sh", "-c", script], { cwd: room })).stdout.split("\0");
      expect(read).toHaveLength(examples.length);
      for (const words of read.map((text) => text.trimEnd().split("\n"))) {
        // What follows the command that `exec` runs belongs to that.
        const args = name === "exec" ? ["exec", "--help", ...words] : [...words, "--help"];
        const parsed = await runHere(args, { cwd: room, home: room });
        expect(parsed.stdout, `${parsed}`).toContain(`usage: cotenant ${name}`);
        expect(parsed.status).toBe(0);
      }
    }
  });

  it("is reached in every usual way", async () => {
    const overview = (await cotenant(room, [])).stdout;
    for (const args of [["help"], ["--help"]])
      expect(await cotenant(room, args)).toMatchObject({ status: 0, stdout: overview });
    const group = (await cotenant(room, ["claim", "--help"])).stdout;
    expect(group).toContain("force-evict");
    expect(await cotenant(room, ["help", "claim"])).toMatchObject({ status: 0, stdout: group });
    expect(await cotenant(room, ["claim"])).toMatchObject({ status: 64, stdout: group });
    const command = (await cotenant(room, ["claim", "acquire", "--help"])).stdout;
    expect(await cotenant(room, ["help", "claim", "acquire"])).toMatchObject({ status: 0, stdout: command });
  });

  it("is one JSON document with --json", async () => {
    for (const args of [
      ["--json"],
      ["help", "--json"],
      ["claim", "--help", "--json"],
      ["gc", "--help", "--json"],
    ]) {
      const { data } = await cotenant(room, args);
      expect(data["help"]).toContain("usage: cotenant");
    }
    expect((await cotenant(room, ["--version", "--json"])).data["cotenant"]).toMatch(/^\d+\.\d+\.\d+/);
    expectJsonRefused(await cotenant(room, ["claim", "--json"]), 64, "E_USAGE");
  });

  it("answers an unknown flag of any command with 64 and a pointer to its help", async () => {
    for (const name of all) {
      const ran = await runHere([...name.split(" "), "--no-such-flag"], { cwd: room, home: room });
      expectRefused(ran, 64, "E_USAGE");
      expect(ran.stderr).toContain(`cotenant ${name} --help`);
    }
    expect(all.length).toBeGreaterThan(20);
  });

  it("suggests what was probably meant", async () => {
    const suggestion = async (...args: string[]) => (await cotenant(room, args)).stderr;
    expect(await suggestion("lock", "acqiure")).toContain('"lock acquire"');
    expect(await suggestion("statsu")).toContain('"status"');
    expect(await suggestion("lock", "acquire", "a", "--tll", "5")).toContain("--ttl");
    for (const [typed, meant] of [
      ["claim aquire", "claim acquire"],
      ["claim relese 7x3k", "claim release"],
      ["claim stauts", "claim status"],
      ["clos", "close"],
      ["clos 7x3k", "close"],
      ["lokc acquire a", "lock acquire"],
      ["unpause", "resume"],
      ["lock evict a", "claim force-evict"],
      ["evict 7x3k", "claim force-evict"],
    ] as const) {
      const { stderr } = await runHere(typed.split(" "), { cwd: room, home: room });
      expect(stderr, typed).toContain(`did you mean "${meant}"?`);
    }
    for (const [typed, said] of [
      ["daemon log", 'did you mean "daemon status", which names its log?'],
      ["daemon logs", 'did you mean "daemon status", which names its log?'],
      ["daemon restart", "run: cotenant daemon stop, then cotenant daemon start"],
    ] as const)
      expect((await runHere(typed.split(" "), { cwd: room, home: room })).stderr, typed).toContain(said);
  });

  it("suggests nothing that is not near, and nothing that ends something", async () => {
    for (const typed of ["daemon lag", "daemon stpo", "deinti", "puase", "worktree remov x", "lock evil"]) {
      const { stderr } = await runHere(typed.split(" "), { cwd: room, home: room });
      expect(stderr, typed).toContain("there is no command");
      expect(stderr, typed).not.toContain("did you mean");
    }
  });

  it("says of a verb that is none where the group's verbs are, and shows them for 'help'", async () => {
    const ran = (typed: string) => runHere(typed.split(" "), { cwd: room, home: room });
    for (const typed of ["land rm work/login", "land work/login", "gate nonsense"]) {
      const group = typed.split(" ")[0]!;
      expect((await ran(typed)).stderr, typed).toContain(`see 'cotenant help ${group}'`);
    }
    const shown = await ran("land help");
    expect(shown.status).toBe(0);
    expect(shown.stdout).toContain("usage: cotenant land <verb>");
  });

  it("says what is missing, and where a word that is too many belongs", async () => {
    const said = async (typed: string) => (await runHere(typed.split(" "), { cwd: room, home: room })).stderr;
    expect(await said("land add")).toContain("'land add' needs a branch");
    expect(await said("gate pass 7x3k")).toContain("needs an issue and a gate");
    expect(await said("land run work/login")).toContain("--only <branch>");
    expect(await said("dispatch -n 4")).not.toContain("did you mean");
    expect(await said("dispatch --timeout 1h --agent claude")).toContain("a whole number of seconds");
  });

  it("shows examples as they are typed, without what a test expects of them", async () => {
    const { stdout } = await runHere(["dispatch", "stop", "--help"], { cwd: room, home: room });
    expect(stdout).toContain("cotenant dispatch stop --now\n");
    expect(stdout).not.toContain("exits");
  });

  it("names what is short for something else", async () => {
    const { stdout } = await runHere(["help"], { cwd: room, home: room });
    expect(stdout).toContain("close <id>        issue update <id> --state done --release");
  });

  it("says which flag lacks its value, and which takes none", async () => {
    const lacking = await cotenant(room, ["lock", "acquire", "a", "--reason"]);
    expectRefused(lacking, 64, "E_USAGE");
    expect(lacking.stderr).toContain("--reason needs a value");
    const surplus = await cotenant(room, ["lock", "acquire", "a", "--wait=yes"]);
    expectRefused(surplus, 64, "E_USAGE");
    expect(surplus.stderr).toContain("--wait does not take a value");
  });

  it("shows versions", async () => {
    expect((await cotenant(room, ["--version"])).stdout).toMatch(/^cotenant \d+\.\d+\.\d+\n$/);
    const { data } = await cotenant(room, ["version", "--json"]);
    expect(data).toMatchObject({ node: process.versions.node, git: expect.stringMatching(/^2\./) });
  });
});
