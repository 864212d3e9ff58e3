import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import type { RealReport } from "../../src/features/harnesses/coverage";
import { runRealCanaries } from "../../src/features/harnesses/real-canary/real-canary";
import { fakeClaude, type Manner } from "../support/fake-claude";
import { oneIn } from "../support/one-in";
import { PROGRAM, type Ran, type Running, start, until } from "../support/program";
import { scratch } from "../support/scratch";
import { Furnished, HARNESSES } from "../support/settings";

const it = oneIn(8);

let here: Furnished;
let [folder, temporary, witness] = ["", "", ""];
beforeEach(async () => {
  here = await Furnished.make();
  const room = scratch();
  [folder, temporary] = ["bin", "t"].map((name) => path.join(room, name)) as [string, string];
  witness = path.join(room, "witness.json");
  for (const made of [folder, temporary]) fs.mkdirSync(made);
  // All that is on the PATH: whoever runs the tests may have harnesses.
  fs.symlinkSync(process.execPath, path.join(folder, "node"));
  const git = execFileSync("/bin/sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
  fs.symlinkSync(git, path.join(folder, "git"));
});

const begin = (...args: string[]): Running => {
  const env = {
    PATH: folder,
    HOME: here.home,
    TMPDIR: temporary,
    COTENANT_AGENT_ID: "agent:a",
    ANTHROPIC_AUTH_TOKEN: "a secret of mine",
    HTTPS_PROXY: "http://proxy.invalid:1",
  };
  return start([PROGRAM, "agent", "doctor", "--real", "--no-canary", ...args], { cwd: here.repo.root, env });
};

const doctor = (...args: string[]): Promise<Ran> => begin(...args).done;

async function tried(manner: Manner): Promise<{ readonly status: number | null } & RealReport> {
  fakeClaude(folder, manner, witness);
  const { status, json } = await doctor("claude", "--json");
  const [report] = json.data!["real"] as RealReport[];
  expect(fs.readdirSync(temporary)).toEqual([]);
  return { status, ...report! };
}

const seen = (): { readonly env: Record<string, string>; readonly pid: number; readonly child?: number } =>
  JSON.parse(fs.readFileSync(witness, "utf8"));

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0);
    // Whoever has ended and was not waited for yet is not alive.
    return !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
};

describe("agent doctor --real, where no program is installed", () => {
  it("finds nothing wrong, and says that nothing was tried", async () => {
    await here.ask("agent", "install", "claude");
    const { status, stdout } = await doctor();
    expect(status).toBe(0);
    expect(stdout).toMatch(
      /^HARNESS +LEVEL +STATE +CANARY +REAL +FILE\nClaude Code +project +installed +not installed +/,
    );
    expect(stdout).toContain("note: no harness's own program was found, so none was tried");
    const { data } = await doctor("--json");
    expect((data["real"] as RealReport[]).map(({ harness, outcome }) => [harness, outcome])).toEqual(
      HARNESSES.map((harness) => [harness, "not_installed"]),
    );
  });

  it("fails for one that is named", async () => {
    await here.ask("agent", "install", "gemini");
    const { status, stdout } = await doctor("gemini");
    expect(status).toBe(10);
    expect(stdout).toContain("note: Gemini CLI, not installed: there is no 'gemini' on the PATH");
  });

  it("says nothing of it without --real", async () => {
    const { data } = await here.ask("agent", "doctor", "--no-canary");
    expect(data["real"]).toBe(null);
  });
});

describe("agent doctor --real", () => {
  it("passes with a program that asks model and hooks, and shows its version", async () => {
    await here.ask("agent", "install", "claude");
    const before = here.picture();
    const log = here.repo.logText();
    expect(await tried("well")).toEqual({
      status: 0,
      harness: "claude",
      outcome: "passed",
      program: path.join(folder, "claude"),
      version: "9.8.7",
      why: null,
    });
    const { stdout, stderr } = await doctor();
    expect(stdout).toMatch(/Claude Code +project +installed +passed \(9\.8\.7\) +/);
    expect(stderr).toContain(`trying Claude Code: ${folder}/claude`);
    // Neither the project, nor its log, nor the person's home has noticed.
    expect([here.picture(), here.repo.logText()]).toEqual([before, log]);
  });

  it("gives the program an empty home, and none of the person's variables", async () => {
    await here.ask("agent", "install", "claude");
    await tried("well");
    const { env } = seen();
    expect(
      Object.keys(env).filter((name) => /TOKEN|PROXY|COTENANT|GIT_(?!CONFIG_NOSYSTEM)/.test(name)),
    ).toEqual([]);
    expect(env["HOME"]).toMatch(new RegExp(`^${fs.realpathSync(temporary)}/cotenant-real-`));
    expect(env["ANTHROPIC_BASE_URL"]).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  });

  it("tries a program whose settings do not ask yet, and shows it in the table", async () => {
    fakeClaude(folder, "well", witness);
    const { status, stdout } = await doctor();
    expect(status).toBe(0);
    expect(stdout).toMatch(/Claude Code +missing +passed \(9\.8\.7\)/);
  });

  it.each([
    ["mute", "protocol_changed", /^it never asked the model: .*exit 0, printed: please log in/],
    ["foreign", "protocol_changed", /^it never asked the model, but sent POST \/v9\/thoughts: /],
    ["hookless", "protocol_changed", /^it wrote a file, and called none of the hooks$/],
    ["deaf", "failed", /^a file that somebody else holds was overwritten$/],
  ] as const)("finds one that is %s", async (manner, outcome, why) => {
    await here.ask("agent", "install", "claude");
    const report = await tried(manner);
    expect(report).toMatchObject({ status: 10, outcome, version: "9.8.7", why: expect.stringMatching(why) });
  });

  it("does not try Cursor's, which needs an account", async () => {
    fs.writeFileSync(path.join(folder, "cursor-agent"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
    const { status, stdout } = await doctor();
    expect(status).toBe(0);
    expect(stdout).toContain("note: Cursor, not tried: it cannot be tried without an account");
  });

  it("says where shared settings find no cotenant on the PATH", async () => {
    await here.ask("agent", "install", "claude", "--shared");
    const { outcome, why } = await tried("well");
    expect([outcome, why]).toEqual([
      "failed",
      "its settings look for 'cotenant' on the PATH, and there is none",
    ]);
  });
});

describe("a program that hangs", () => {
  it("is killed in time with all that it has started", async () => {
    fakeClaude(folder, "hangs", witness);
    const cotenant = { node: process.execPath, program: PROGRAM };
    const [report] = await runRealCanaries(
      [{ harness: "claude", installer: cotenant, isShared: false, via: "program" as const }],
      {
        env: { PATH: folder },
        home: null,
        cotenant,
        limitMs: 8_000,
        interrupted: new AbortController().signal,
        onStart() {},
      },
    );
    expect(report).toMatchObject({ outcome: "protocol_changed", version: "9.8.7" });
    expect(report!.why).toMatch(
      /^it never asked the model: it was not done within [0-8] s; it printed: nothing$/,
    );
    const { pid, child } = seen();
    await until("they are dead", () => !isAlive(pid) && !isAlive(child!));
  });

  it("goes with a doctor that is interrupted, and nothing is left behind", async () => {
    fakeClaude(folder, "hangs", witness);
    const running = begin();
    await until("it has started", () => fs.existsSync(witness));
    running.kill("SIGINT");
    const { status, stderr } = await running.done;
    expect([status, stderr]).toEqual([null, expect.stringContaining("stopped; nothing is left behind")]);
    const { pid, child } = seen();
    await until("they are dead", () => !isAlive(pid) && !isAlive(child!));
    expect(fs.readdirSync(temporary)).toEqual([]);
  });
});
