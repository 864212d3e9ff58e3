import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { LISTED } from "../../src/cli/lookup";
import { keptScratch } from "../docs/kept-scratch";
import { oneIn } from "../support/one-in";
import { runHere } from "../support/program";
import { A, put, withFiles } from "./publish-stage";

const it = oneIn(8);

/** How each command that takes a secret is called by one who need not show any: the session has kept it. */
const CALLS: Readonly<Record<string, (id: string) => readonly string[]>> = {
  "lock renew": () => ["src/a.ts"],
  "lock release": () => ["src/a.ts"],
  "claim renew": (id) => [id],
  "claim heartbeat": (id) => [id],
  "claim release": (id) => [id],
  "claim transfer": (id) => [id, "--to-agent", "agent:b", "--reason", "r"],
  "worktree create": (id) => ["--issue", id],
  "worktree renew": () => [],
  "worktree unlock": () => [],
  snapshot: () => [],
  restore: () => ["latest", "--inplace"],
  publish: () => ["--branch", "work/x", "--message", "m", ...put("src/a.ts", "x\n")],
  "issue update": (id) => [id, "--priority", "high"],
  "issue delete": (id) => [id, "--reason", "r"],
  "issue assign": (id) => [id, "agent:b"],
  "issue unassign": (id) => [id],
  "issue reject": (id) => [id, "--reason", "r"],
  "issue reopen": (id) => [id, "--reason", "r"],
  "label add": (id) => [id, "area:x"],
  "label rm": (id) => [id, "area:x"],
  "dep add": (id) => [id, id],
  "dep rm": (id) => [id, id],
  "doc add": (id) => [id, "src/a.ts"],
  "doc remove": (id) => [id, "src/a.ts"],
  "gate add": (id) => [id, "tests"],
  "gate remove": (id) => [id, "tests"],
  "gate pass": (id) => [id, "tests"],
  "gate fail": (id) => [id, "tests"],
  "gate run": (id) => [id, "build"],
};

const room = keptScratch("cotenant-shown");

describe("a secret that is shown", () => {
  it("is taken by these commands and no others", async () => {
    const taking: string[] = [];
    for (const name of LISTED) {
      const { stdout } = await runHere([...name.split(" "), "--help"], { cwd: room, home: room });
      if (stdout.includes("--secret-file")) taking.push(name);
    }
    expect(Object.keys(CALLS).sort()).toEqual(taking.sort());
  });

  it("must be right, also where the session has kept one that is, and whatever is enforced", async () => {
    const repo = withFiles(path.join(room, "repo"));
    await repo.prepare(A, "init");
    const id = await repo.issue();
    await repo.prepare(A, "lock", "acquire", "src/a.ts");
    await repo.prepare(A, "claim", "acquire", id);
    await repo.prepare(A, "worktree", "lock");
    await repo.prepare(A, "snapshot");
    await repo.prepare("human:h", "gate", "define", "tests", "--title", "Tests");
    await repo.prepare("human:h", "gate", "define", "build", "--command", "true");
    await repo.prepare("human:h", "trust");
    for (const gate of ["tests", "build"]) await repo.prepare(A, "gate", "add", id, gate);
    const wrong = path.join(room, "wrong");
    fs.writeFileSync(wrong, `${"x".repeat(43)}\n`);
    const before = repo.logText();
    const passed: string[] = [];
    for (const [name, args] of Object.entries(CALLS))
      for (const enforced of ["strict", "off"]) {
        const env = { COTENANT_AGENT_ID: A, COTENANT_WORKTREE_ENFORCE_LEASES: enforced };
        const words = [...name.split(" "), ...args(id), "--secret-file", wrong, "--json"];
        const { status, json } = await runHere(words, { cwd: repo.root, home: room, env });
        if (status === 0) passed.push(`${name} (${enforced})`);
        else if (!["E_LOCK_NOT_HELD", "E_POLICY", "E_CYCLE"].includes(json.error?.code ?? ""))
          passed.push(`${name}: ${json.error?.code} ${json.error?.message}`);
      }
    expect(passed).toEqual([]);
    expect(repo.logText()).toBe(before);
  }, 60_000);
});
