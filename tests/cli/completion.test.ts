import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { LISTED } from "../../src/cli/lookup";
import { needTool } from "../house/need-tool";
import { oneIn } from "../support/one-in";
import { PROGRAM, type Ran, run } from "../support/program";
import { expectRefused } from "../support/refusals";
import { cotenant, pictureOf, TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(8);

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
});

const env = () => ({
  PATH: `${path.dirname(PROGRAM)}:${process.env["PATH"]}`,
  COTENANT_AGENT_ID: "agent:ada",
});
/** After two seconds nobody waits for an answer any more, and it is empty: it is asked for again. */
const patiently = async (ask: () => Promise<Ran>) => {
  for (let tries = 1; ; tries++) {
    const startedMs = performance.now();
    const ran = await ask();
    if (ran.stdout.trim() !== "" || performance.now() - startedMs < 2_000 || tries === 5) return ran;
  }
};
const shell = async (...command: string[]) => {
  const ran = await patiently(() => run(command, { cwd: repo.root, env: env() }));
  expect(ran.stderr, `${ran}`).toBe("");
  return ran.stdout.split("\n").filter((line) => line !== "");
};

/** As readline would: the line as it was typed, cut at COMP_WORDBREAKS. */
const bash = (line: string) =>
  shell(
    "bash",
    "-c",
    `source <(cotenant completion bash); COMP_LINE=$1; COMP_POINT=\${#1}
     read -ra COMP_WORDS <<<"\${1//:/ : }"; COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _cotenant cotenant
     printf '%s\\n' "\${COMPREPLY[@]}"`,
    "bash",
    line,
  );
const zsh = (...words: string[]) =>
  shell(
    "zsh",
    "-f",
    "-c",
    `compdef() { }; compadd() { print -rl -- "\${values[@]}" }; _files() { print -r -- "files $*" }
     eval "$(cotenant completion zsh)"; words=(cotenant "$@"); CURRENT=$#words; _cotenant`,
    "zsh",
    ...words,
  );
const fish = async (line: string) =>
  (
    await shell(
      "fish",
      "--no-config",
      "-c",
      'cotenant completion fish | source; complete -C "$argv[1]"',
      line,
    )
  ).map((row) => row.split("\t")[0]!);
/** What the scripts ask for. */
const asked = async (...words: string[]) => {
  const command = [PROGRAM, "complete", "--", ...words];
  const ran = await patiently(() => run(command, { cwd: repo.root, env: env() }));
  expect({ status: ran.status, stderr: ran.stderr }).toEqual({ status: 0, stderr: "" });
  return ran.stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split("\t")[0]!);
};

describe("completion", () => {
  it("knows every command, every verb and every flag", async () => {
    const loose = LISTED.filter((name) => !name.includes(" "));
    const groups = [
      ...new Set(LISTED.filter((name) => name.includes(" ")).map((name) => name.split(" ")[0]!)),
    ];
    expect((await asked("")).sort()).toEqual([...loose, ...groups, "help"].sort());
    expect(await asked("lock", "")).toEqual(["acquire", "renew", "release", "steal", "status", "gc"]);
    expect(await asked("help", "cla")).toEqual(["claim"]);
    expect(await asked("lock", "acquire", "--no")).toEqual(["--note"]);
    expect(await asked("--json", "st")).toEqual(["status", "stats"]);
    // Old names are understood, and not offered.
    expect(await asked("lock", "release", "--to")).toEqual([]);
  });

  it("knows the values of flags and settings that have few", async () => {
    expect(await asked("init", "--enforce", "")).toEqual(["off", "warn", "strict"]);
    expect(await asked("issue", "list", "--state=in")).toEqual(["--state=in_progress"]);
    expect(await asked("events", "--type", "claim.rel")).toEqual(["claim.released"]);
    expect(await asked("config", "get", "coordination.default")).toEqual(["coordination.default_ttl_secs"]);
    expect(await asked("config", "set", "worktree.enforce_leases", "s")).toEqual(["strict"]);
    expect(await asked("completion", "")).toEqual(["bash", "zsh", "fish"]);
  });

  it("knows this repository's ids, keys, agents and worktrees, and writes nothing", async () => {
    const id = await repo.issue("Some title");
    await repo.prepare("agent:bob", "lock", "acquire", "src/a.ts", "--resource", "db");
    const before = pictureOf(repo.root);
    const short = id.slice(10, 14).toLowerCase();
    expect(await asked("claim", "acquire", "")).toEqual([short]);
    expect(await asked("claim", short.slice(0, 2))).toContain(short);
    expect(await asked("issue", "show", id.slice(0, 12))).toEqual([id]);
    expect(await asked("lock", "release", "file:")).toEqual(["file:src/a.ts", ":files"]);
    expect(await asked("lock", "renew", "--resource", "")).toEqual(["db"]);
    expect(await asked("events", "--agent", "")).toEqual(["agent:ada", "agent:bob"]);
    expect(await asked("claim", "transfer", "x", "--to-worktree", "wt:")).toHaveLength(1);
    expect(await asked("lock", "acquire", "")).toEqual([":files"]);
    expect(await asked("lock", "acquire", "--dir", "")).toEqual([":directories"]);
    expect(pictureOf(repo.root)).toEqual(before);
  });

  it("says nothing and never fails, whatever is wrong", async () => {
    expect(await asked("no", "such", "")).toEqual([]);
    expect(await asked("claim", "acquire", "--bogus", "x", "y", "")).toEqual([]);
    fs.mkdirSync(path.join(repo.root, ".cotenant"));
    repo.write(".cotenant/config.toml", "this is not TOML");
    await repo.issue().catch(() => "");
    expect(await asked("lock", "release", "")).toEqual([":files"]);
    const outside = scratch();
    const ran = await cotenant(outside, ["complete", "--", "claim", "acquire", ""]);
    expect({ ...ran }).toMatchObject({ status: 0, stdout: "", stderr: "" });
    expectRefused(await cotenant(outside, ["completion", "csh"]), 64, "E_USAGE");
  });
});

describe("in a real shell", () => {
  beforeEach(async () => {
    repo.write("src/real.ts");
    await repo.prepare("agent:bob", "lock", "acquire", "src/a.ts", "my file.ts");
  });

  it("bash, which cuts words at colons", async () => {
    expect(await bash("cotenant lo")).toEqual(["lock"]);
    expect(await bash("cotenant lock re")).toEqual(["renew", "release"]);
    expect(await bash("cotenant lock release file:s")).toEqual(["src/a.ts"]);
    expect(await bash("cotenant lock release file:m")).toEqual(["my\\ file.ts"]);
    expect(await bash("cotenant events --agent agent:b")).toEqual(["bob"]);
    expect(await bash("cotenant issue list --state=in")).toEqual(["in_progress"]);
    expect(await bash("cotenant lock acquire src/r")).toEqual(["src/real.ts"]);
    expect(await bash("cotenant lock acquire --dir s")).toEqual(["src"]);
  });

  it("zsh", async () => {
    needTool("zsh");
    expect(await zsh("lo")).toEqual(["lock"]);
    expect(await zsh("lock", "release", "file:m")).toEqual(["files ", "file:my file.ts"]);
    expect(await zsh("lock", "acquire", "--dir", "")).toEqual(["files -/"]);
    expect(await zsh("events", "--agent", "agent:b")).toEqual(["agent:bob"]);
  });

  it("fish", async () => {
    needTool("fish");
    expect(await fish("cotenant lo")).toEqual(["lock"]);
    expect((await fish("cotenant lock re")).sort()).toEqual(["release", "renew"]);
    expect(await fish("cotenant lock release file:m")).toEqual(["file:my file.ts"]);
    expect(await fish("cotenant events --agent agent:b")).toEqual(["agent:bob"]);
    expect(await fish("cotenant lock acquire src/r")).toEqual(["src/real.ts"]);
  });
});
