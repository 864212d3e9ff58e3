import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { isAlive } from "../support/alive";
import { oneIn } from "../support/one-in";
import { runHere, until } from "../support/program";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { ulid } from "../support/ulid";

const it = oneIn(8);

const ADA = "agent:ada";
let repo: TestRepo;
beforeEach(async () => {
  repo = TestRepo.make();
  await repo.prepare(ADA, "init");
});

const registry = () => path.join(repo.root, ".cotenant/gates/registry.json");
const inRoot = (name: string) => path.join(repo.root, name);

/** A claimed issue with one gate that runs this. */
async function gated(line: string, ...flags: string[]): Promise<string> {
  const defined = await repo.askHere("human:me", "gate", "define", "check", "--command", line, ...flags);
  expect(defined.data["gate"]).toMatchObject({ kind: "automated", trusted: true });
  const id = await repo.issue();
  await repo.prepare(ADA, "claim", "acquire", id);
  await repo.prepare(ADA, "gate", "add", id, "check");
  return id;
}

/** A claimed issue that waits for one person's word. */
async function reviewed(): Promise<string> {
  await repo.prepare("human:me", "gate", "define", "review");
  const id = await repo.issue();
  await repo.prepare(ADA, "claim", "acquire", id);
  await repo.prepare(ADA, "gate", "add", id, "review");
  await repo.prepare(ADA, "issue", "update", id, "--state", "done");
  return id;
}

function inHarness(agent: string, ...args: string[]) {
  const env = { COTENANT_AGENT_ID: agent, CLAUDECODE: "1" };
  return runHere([...args, "--json"], { cwd: repo.root, home: process.env["HOME"]!, env });
}

describe("gate define", () => {
  it("fills in a preset by what the repository has, and says what it chose", async () => {
    repo.write("package.json", JSON.stringify({ scripts: { test: "vitest" } }));
    const ran = await repo.run(ADA, "gate", "define", "--preset", "tests");
    expect(ran.stdout).toContain('runs "npm test"');
    expect(ran.stdout).toContain('because package.json has a script "test"');
    expect(ran.stdout).toContain("until a person runs 'cotenant trust'");
    expectJsonRefused(await repo.askHere(ADA, "gate", "define", "--preset", "lint"), 4, "E_NOT_FOUND");
  });

  it("changes an existing one only when told to, and says when nothing changes", async () => {
    await repo.prepare(ADA, "gate", "define", "tests", "--command", "true");
    expect((await repo.ask(ADA, "gate", "define", "tests", "--command", "true")).data.changed).toBe(false);
    const refused = await repo.askHere(ADA, "gate", "define", "tests", "--command", "false");
    expectJsonRefused(refused, 64, "E_USAGE");
    const replaced = await repo.askHere(ADA, "gate", "define", "tests", "--command", "false", "--replace");
    expect(replaced.data).toMatchObject({ changed: true, gate: { command: "false", trusted: false } });
  });

  it.each([
    [["Tests"], 64, "E_USAGE"],
    [[], 64, "E_USAGE"],
    [["x", "--command", ""], 64, "E_USAGE"],
    [["x", "--command", "a\nb"], 64, "E_USAGE"],
    [["x", "--command", "true", "--timeout", "0"], 9, "E_LIMIT"],
    [["x", "--command", "true", "--cwd", "../.."], 9, "E_PATH_ESCAPE"],
    [["x", "--command", "true", "--cwd", ".git"], 9, "E_PATH_ESCAPE"],
    [["x", "--timeout", "5"], 64, "E_USAGE"],
    [["x", "--preset", "magic"], 64, "E_USAGE"],
    [["x", "--title", "y".repeat(300)], 9, "E_LIMIT"],
  ])("refuses %j", async (args, exit, code) => {
    expectJsonRefused(await repo.ask(ADA, "gate", "define", ...args), exit, code);
    expect(fs.existsSync(registry())).toBe(false);
  });

  it("loses nothing when many of one session define at once", async () => {
    const names = ["a", "b", "c", "d", "e", "f"].map((name) => `gate-${name}`);
    const ran = await Promise.all(names.map((name) => repo.ask(ADA, "gate", "define", name)));
    for (const one of ran) expect(one.data.changed, `${one}`).toBe(true);
    const { gates } = JSON.parse(fs.readFileSync(registry(), "utf8"));
    expect(gates.map(({ key }: { key: string }) => key)).toEqual(names);
    expect((await repo.ask(ADA, "status")).data.leases).toEqual([]);
  });

  it("leaves nothing for ever when it is killed half-way", async () => {
    await repo.prepare(ADA, "gate", "define", "x");
    const [old, young] = ["0123456789ab", "ba9876543210"].map((end) => `${registry()}.new-${end}`);
    for (const file of [old!, young!]) fs.writeFileSync(file, "{");
    const hoursAgo = new Date(Date.now() - 2 * 3_600_000);
    fs.utimesSync(old!, hoursAgo, hoursAgo);
    expect(repo.git("status", "--porcelain", "--untracked-files=all")).not.toContain(".new-");
    await repo.prepare(ADA, "gc");
    expect([old!, young!].map((file) => fs.existsSync(file))).toEqual([false, true]);
  });

  it("writes through no link", async () => {
    fs.mkdirSync(inRoot("elsewhere"));
    fs.symlinkSync(inRoot("elsewhere"), inRoot(".cotenant/gates"));
    expectJsonRefused(await repo.ask(ADA, "gate", "define", "x"), 9, "E_PATH_ESCAPE");
    expect(fs.readdirSync(inRoot("elsewhere"))).toEqual([]);
  });
});

describe("a committed registry that names a command", () => {
  const hostile = (command: string) =>
    repo.write(
      ".cotenant/gates/registry.json",
      JSON.stringify({
        schema_version: 1,
        gates: [
          { key: "check", title: "harmless\u{1b}[2J", kind: "automated", command, cwd: ".", timeout_secs: 9 },
        ],
      }),
    );

  it("runs nothing until a person has trusted that very command", async () => {
    hostile("touch ran-1");
    const id = await repo.issue();
    await repo.prepare(ADA, "claim", "acquire", id);
    await repo.prepare(ADA, "gate", "add", id, "check");
    expectRefused(await repo.run(ADA, "gate", "run", id), 9, "E_UNTRUSTED");
    expectRefused(await repo.runHere("human:me", "gate", "run", id), 9, "E_UNTRUSTED");
    expect(fs.existsSync(inRoot("ran-1"))).toBe(false);

    const list = await repo.askHere(ADA, "trust", "--list");
    expect(list.data["waiting_gates"]).toEqual([{ key: "check", command: "touch ran-1", cwd: "." }]);
    expect((await repo.runHere(ADA, "trust", "--list")).stdout).toContain("touch ran-1");
    expectRefused(await repo.runHere(ADA, "trust"), 9, "E_POLICY");
    await repo.prepare("human:me", "trust");
    expect((await repo.askHere(ADA, "gate", "run", id)).data["pending"]).toEqual([]);
    expect(fs.existsSync(inRoot("ran-1"))).toBe(true);

    hostile("touch ran-2");
    expectRefused(await repo.runHere(ADA, "gate", "run", id, "--all"), 9, "E_UNTRUSTED");
    expect(fs.existsSync(inRoot("ran-2"))).toBe(false);
    await repo.prepare("human:me", "trust", "--revoke");
    hostile("touch ran-1");
    expectRefused(await repo.runHere(ADA, "gate", "run", id, "--all"), 9, "E_UNTRUSTED");
  });

  it("cannot reach a terminal unescaped", async () => {
    hostile("true");
    for (const args of [["list"], ["show", "check"]]) {
      const ran = await repo.run(ADA, "gate", ...args);
      expect(ran.status, `${ran}`).toBe(0);
      expect(ran.stdout).not.toContain("\u{1b}[2J");
    }
  });

  it("is trusted when a person defines it, and not when an agent does", async () => {
    await repo.prepare(ADA, "gate", "define", "mine", "--command", "true");
    expect((await repo.ask(ADA, "gate", "show", "mine")).data["gate"]).toMatchObject({ trusted: false });
    await repo.prepare("human:me", "gate", "define", "theirs", "--command", "true");
    expect((await repo.askHere(ADA, "gate", "show", "theirs")).data["gate"]).toMatchObject({ trusted: true });
  });
});

describe("gate run", () => {
  it("runs in the worktree's root or below, and says which issue and gate it is for", async () => {
    repo.write("sub/file");
    const id = await gated(
      'echo "$COTENANT_ISSUE_ID $COTENANT_GATE $(basename "$PWD") [$COTENANT_SECRET]"',
      "--cwd",
      "sub",
    );
    const { data } = await repo.askWith({ COTENANT_SECRET: "" }, ADA, "gate", "run", id);
    expect(data["runs"]).toMatchObject([
      { status: "passed", exit_status: 0, output: `${id} check sub []\n` },
    ]);
  });

  it("fails at the timeout, and keeps what was printed", async () => {
    const id = await gated("echo begun; sleep 300", "--timeout", "4");
    const ran = await repo.ask(ADA, "gate", "run", id);
    expect(ran.status).toBe(9);
    expect(ran.json.data!["runs"]).toMatchObject([{ status: "failed", timed_out: true, output: "begun\n" }]);
    const shown = await repo.runHere(ADA, "gate", "show", id, "check");
    expect(shown.stdout).toContain("stopped at its timeout");
    expect(shown.stdout).toContain("| begun");
  });

  it("keeps the end of a huge output, without what moves a cursor", async () => {
    const id = await gated(
      "head -c 3000000 /dev/zero | tr '\\0' x; printf '\\033[31mred\\033[0m\\007 end'; exit 1",
    );
    const ran = await repo.ask(ADA, "gate", "run", id);
    const [run] = ran.json.data!["runs"] as { output: string; output_bytes: number; output_cut: boolean }[];
    expect(run).toMatchObject({ output_cut: true, output_bytes: 3_000_017 });
    expect(run!.output).toMatch(/xred\u{fffd} end$/u);
    expect(run!.output.length).toBeLessThanOrEqual(65_536);
    const results = fs.readFileSync(inRoot(`.cotenant/gates/results/${id}.jsonl`), "utf8");
    expect(results.length).toBeLessThan(11_000);
  });

  it("leaves no child behind when it is interrupted, and writes no result", async () => {
    const id = await gated("sleep 300 & echo $! > child; wait");
    const running = repo.start(ADA, ["gate", "run", id]);
    const child = await until("the command runs", () => {
      const text = fs.existsSync(inRoot("child")) ? fs.readFileSync(inRoot("child"), "utf8").trim() : "";
      return text === "" ? false : Number(text);
    });
    running.kill("SIGINT");
    expect((await running.done).status).toBeNull();
    expect(isAlive(child)).toBe(false);
    expect((await repo.ask(ADA, "gate", "list", id)).data["pending"]).toEqual(["check"]);
  });

  it("does not hold the store's mutex while a command runs", async () => {
    const id = await gated("touch begun; while [ ! -f go-on ]; do sleep 0.05; done");
    const running = repo.start(ADA, ["gate", "run", id, "--json"]);
    await until("the command runs", () => fs.existsSync(inRoot("begun")));
    const other = await repo.ask("agent:bob", "lock", "acquire", "some-file");
    expect(other.lease.agent_id).toBe("agent:bob");
    repo.write("go-on");
    expect((await running.done).data["pending"]).toEqual([]);
  });

  it("asks an agent for the claim before it runs anything", async () => {
    const id = await gated("touch ran");
    expectRefused(await repo.run("agent:bob", "gate", "run", id), 6, "E_LOCK_NOT_HELD");
    expect(fs.existsSync(inRoot("ran"))).toBe(false);
    await repo.prepare(ADA, "claim", "release", id);
    expectJsonRefused(await repo.askHere("agent:bob", "gate", "run", id), 6, "E_LEASE_REQUIRED");
    expect((await repo.askHere("ci:build", "gate", "run", id)).data["pending"]).toEqual([]);
  });

  it("says when there is nothing to run", async () => {
    const id = await gated("true");
    await repo.prepare("human:me", "gate", "define", "review");
    await repo.prepare(ADA, "gate", "add", id, "review");
    expectJsonRefused(await repo.ask(ADA, "gate", "run", id, "review"), 64, "E_USAGE");
    expectJsonRefused(await repo.askHere(ADA, "gate", "run", id, "nothing"), 4, "E_NOT_FOUND");
    await repo.askHere(ADA, "gate", "run", id);
    expect((await repo.askHere(ADA, "gate", "run", id)).data["runs"]).toEqual([]);
    expectJsonRefused(await repo.askHere(ADA, "gate", "run", await repo.issue()), 4, "E_NOT_FOUND");
  });
});

describe("new issues from a file", () => {
  it("that wait for each other are refused with what helps: they are in the file alone", async () => {
    repo.write(
      "circle.jsonl",
      '{"title":"A","ref":"a","dependencies":["b"]}\n{"title":"B","ref":"b","dependencies":["a"]}\n',
    );
    const refused = await repo.ask(ADA, "issue", "create", "--from", "circle.jsonl");
    expect(refused.status).toBe(9);
    expect(refused.stdout + refused.stderr).toContain("take one of these dependencies out of the file");
  });

  it("that is not there are refused with what helps", async () => {
    const refused = await repo.ask(ADA, "issue", "create", "--from", "nowhere.jsonl");
    expect(refused.status).toBe(4);
    expect(refused.stdout + refused.stderr).toContain("check its name");
  });
});

describe("a new issue", () => {
  it("has only gates that are defined", async () => {
    expectJsonRefused(
      await repo.ask(ADA, "issue", "create", "--title", "T", "--gate", "no"),
      4,
      "E_NOT_FOUND",
    );
    repo.write("many.jsonl", '{"title":"A","gates":["review"]}\n{"title":"B","gates":["no"]}\n');
    await repo.prepare(ADA, "gate", "define", "review");
    expectJsonRefused(await repo.askHere(ADA, "issue", "create", "--from", "many.jsonl"), 4, "E_NOT_FOUND");
    expect((await repo.askHere(ADA, "issue", "list")).data["issues"]).toEqual([]);
    const made = await repo.askHere(ADA, "issue", "create", "--title", "T", "--gate", "review");
    expect(made.data.issue).toMatchObject({ gates: ["review"] });
  });
});

describe("gate pass", () => {
  it("is nobody's word for an automated gate: only its run passes it", async () => {
    const id = await gated("false");
    await repo.prepare(ADA, "issue", "update", id, "--state", "done");
    for (const who of [ADA, "human:me", "ci:build", "admin:root"]) {
      const refused = await repo.askHere(who, "gate", "pass", id, "check", "--reason", "ran it elsewhere");
      expectJsonRefused(refused, 9, "E_POLICY");
      expect(refused.error.hint).toContain(`cotenant gate run ${id} check`);
    }
    expect((await repo.askHere(ADA, "gate", "list", id)).data["pending"]).toEqual(["check"]);
  });

  it("is the word of those whom gates.pass_by names, and they need no claim", async () => {
    const id = await reviewed();
    const refused = await repo.askHere(ADA, "gate", "pass", id, "review");
    expectJsonRefused(refused, 9, "E_POLICY");
    expect(refused.error.data).toMatchObject({ setting: "gates.pass_by", ruled_by: { source: "default" } });
    // A committed file may name fewer, and without trust not more.
    repo.write(".cotenant/config.toml", '[gates]\npass_by = ["agent:ada", "human:*"]\n');
    expectJsonRefused(await repo.askHere(ADA, "gate", "pass", id, "review"), 9, "E_POLICY");
    repo.write(".cotenant/config.toml", '[gates]\npass_by = ["human:*"]\n');
    expectJsonRefused(await repo.askHere("ci:build", "gate", "pass", id, "review"), 9, "E_POLICY");
    const passed = await repo.askHere("human:eve", "gate", "pass", id, "review", "--reason", "read it");
    expect(passed.data).toMatchObject({
      issue: { state: "done", updated_by: "human:eve", stamp: { lease_id: null } },
      gate: {
        status: "passed",
        results: [{ kind: "manual", by: "human:eve", reason: "read it", run: null }],
      },
    });
  });

  it("can be an agent's where a person has trusted that, from inside a coding agent too", async () => {
    const id = await reviewed();
    repo.write(".cotenant/config.toml", '[gates]\npass_by = ["agent:lead"]\n');
    await repo.prepare("human:me", "trust");
    const passed = await inHarness("agent:lead", "gate", "pass", id, "review");
    expect(passed.data, `${passed}`).toMatchObject({ issue: { state: "done" } });
  });

  it("is refused inside a coding agent, whatever it calls itself, and so is trust", async () => {
    const id = await reviewed();
    await repo.prepare(ADA, "gate", "define", "tests", "--command", "true");
    for (const who of ["human:me", "admin:root", "ci:build"])
      for (const args of [["gate", "pass", id, "review"], ["gate", "remove", id, "review"], ["trust"]])
        expectJsonRefused(await inHarness(who, ...args), 9, "E_POLICY");
  });

  it("cannot be got around by taking the gate off before it is passed", async () => {
    const id = await reviewed();
    const refused = await repo.askHere(ADA, "gate", "remove", id, "review");
    expectJsonRefused(refused, 9, "E_POLICY");
    expect(refused.error.message).toContain("before it is passed");
    const removed = await repo.askHere("human:me", "gate", "remove", id, "review");
    expect(removed.data).toMatchObject({ issue: { state: "done" } });
  });

  it("may be committed by whoever gave it, also while somebody else has the claim", async () => {
    const id = await reviewed();
    await repo.prepare("human:eve", "gate", "pass", id, "review");
    repo.git("add", "--all");
    const hook = await repo.runHere("human:eve", "hook", "pre-commit");
    expect(hook.status, `${hook}`).toBe(0);
    const other = await repo.runHere("agent:bob", "hook", "pre-commit");
    expect(other.status, `${other}`).toBe(1);
  });

  it("is refused for a gate that the issue has not, and for an issue that has ended", async () => {
    const id = await gated("true");
    expectJsonRefused(await repo.ask("human:me", "gate", "pass", id, "other"), 4, "E_NOT_FOUND");
    await repo.prepare(ADA, "issue", "reject", id, "--reason", "no");
    expectJsonRefused(await repo.askHere("human:me", "gate", "pass", id, "check"), 5, "E_TERMINAL_STATE");
    expectJsonRefused(await repo.askHere(ADA, "gate", "add", id, "check"), 5, "E_TERMINAL_STATE");
  });

  it("is the same once more with its request id, also where it has ended the issue", async () => {
    const id = await reviewed();
    const again = ["gate", "pass", id, "review", "--request-id", ulid()];
    const first = await repo.prepare("human:me", ...again);
    expect(first["issue"]).toMatchObject({ state: "done" });
    const second = await repo.prepare("human:me", ...again);
    expect(second).toMatchObject({ replayed: true, issue: { state: "done" } });
    expectJsonRefused(await repo.askHere("human:me", "gate", "pass", id, "review"), 5, "E_TERMINAL_STATE");
  });

  it("starts anew for a gate that was taken off and added again", async () => {
    const id = await gated("true");
    await repo.ask(ADA, "gate", "run", id, "check");
    expect((await repo.askHere(ADA, "gate", "remove", id, "check")).data.changed).toBe(true);
    await repo.prepare(ADA, "gate", "add", id, "check");
    expect((await repo.askHere(ADA, "gate", "list", id)).data["pending"]).toEqual(["check"]);
  });

  it("works outside Git too", async () => {
    const plain = path.join(repo.root, "../plain");
    fs.mkdirSync(path.join(plain, ".cotenant/gates"), { recursive: true });
    const gates = [{ key: "review", title: "", kind: "manual" }];
    fs.writeFileSync(
      path.join(plain, ".cotenant/gates/registry.json"),
      JSON.stringify({ schema_version: 1, gates }),
    );
    const outside = repo.at("../plain");
    const id = await outside.issue();
    await outside.ask(ADA, "gate", "add", id, "review");
    await outside.askHere(ADA, "issue", "update", id, "--state", "done");
    const passed = await outside.askHere(ADA, "gate", "pass", id, "review");
    expect(passed.data).toMatchObject({ issue: { state: "done" } });
    expectJsonRefused(await outside.askHere(ADA, "gate", "run", id), 10, "E_NOT_A_REPO");
  });
});

describe("what is broken", () => {
  const findings = async () => {
    const { data } = (await repo.ask(ADA, "doctor")).json;
    const all = data!["findings"] as { check: string; level: string; message: string }[];
    return all.filter(({ check }) => check === "gates").map(({ level, message }) => `${level}: ${message}`);
  };

  it.each(["", "{", "<<<<<<< ours\n", "[]", '{"schema_version":1,"gates":{}}'])(
    "as a registry is reported, and stops only who needs it: %j",
    async (text) => {
      const id = await gated("true");
      repo.write(".cotenant/gates/registry.json", text);
      for (const args of [["list"], ["show", "x"], ["add", id, "x"], ["define", "y"], ["run", id]])
        expectJsonRefused(await repo.askHere(ADA, "gate", ...args), 10, "E_CONFIG");
      expect((await repo.askHere(ADA, "issue", "show", id)).status).toBe(0);
      expect(await findings()).toEqual([expect.stringMatching(/^error: .*registry\.json cannot be used/)]);
      expect((await repo.askHere(ADA, "validate", "all")).status).toBe(10);
    },
  );

  it("in a registry, in results and in issues is named", async () => {
    const id = await gated("true");
    const gone = await gatedAgain("check");
    await repo.ask(ADA, "gate", "run", gone, "check");
    await repo.prepare(ADA, "issue", "delete", gone);
    fs.appendFileSync(inRoot(`.cotenant/gates/results/${gone}.jsonl`), "{half\n");
    repo.write(".cotenant/gates/results/notes.txt", "x");
    const known = JSON.parse(fs.readFileSync(registry(), "utf8"));
    known.gates = [
      { key: "odd", kind: "manual", owner: "x" },
      { key: "twice", kind: "manual" },
      { key: "twice", kind: "manual" },
      { key: "new", kind: "automated", command: "touch x" },
    ];
    fs.writeFileSync(registry(), JSON.stringify(known));
    const found = await findings();
    for (const words of [
      /^warning: .*"odd" has a field "owner"/,
      /^warning: .*"twice" is there twice/,
      /^note: gate new runs "touch x"/,
      new RegExp(`^warning: issue ${id} has a gate "check" that is not defined`),
      new RegExp(`^note: .*results of issue ${gone}, which was deleted`),
      /^warning: .* 1 line that cannot be read/,
      /^note: .*notes\.txt is no issue's results/,
    ])
      expect(found).toContainEqual(expect.stringMatching(words));
    expect((await repo.askHere(ADA, "validate", "all")).status).toBe(1);
  });

  async function gatedAgain(gate: string): Promise<string> {
    const id = await repo.issue("Another");
    await repo.prepare(ADA, "claim", "acquire", id);
    await repo.prepare(ADA, "gate", "add", id, gate);
    return id;
  }
});
