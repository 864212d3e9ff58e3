import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { Workspace } from "../../src/coordinator/workspace";
import { newResult, pendingGates, readResults } from "../../src/features/gates/results";
import { withGates, withResult } from "../../src/features/gates/rules";
import { issuesIn, underMutex, writerIn } from "../../src/features/issues/desk";
import { newIssue } from "../../src/features/issues/model";
import { settleIssues } from "../../src/features/issues/settle";
import { makeUlid, type Ulid } from "../../src/kernel/ids";
import { nodeGit } from "../../src/platform/git-node";
import { nodePlatform } from "../../src/platform/node/node";
import { NODE_TOOLS } from "../../src/platform/node/this-machine";
import type { Files, Platform } from "../../src/platform/platform";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

/** A machine on which a process dies as soon as it would do this. */
function dyingAt(dies: (call: keyof Files, path: string) => boolean): Platform {
  const platform = nodePlatform();
  let isDead = false;
  const files = new Proxy(platform.files, {
    get: (target, name: keyof Files) => {
      const call = target[name] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        isDead ||= dies(name, String(args[0])) || (args.length > 1 && dies(name, String(args[1])));
        // Descriptors are closed by the operating system, whoever dies.
        if (isDead && name !== "close") throw Object.assign(new Error("dead"), { code: "EIO" });
        return call.apply(target, args);
      };
    },
  });
  return { ...platform, files };
}

async function open(root: string, platform: Platform) {
  const surroundings = {
    ...{ platform, git: nodeGit(), tools: NODE_TOOLS, env: {}, cwd: root },
    ...{ home: scratch(), isTerminal: false },
  };
  const workspace = await Workspace.open(surroundings, { agentId: "human:a", session: "s" });
  const reader = await issuesIn(workspace);
  return { reader, writer: await writerIn(workspace, reader), session: await workspace.session("write") };
}

const WITHOUT_CLAIM = { enforcement: "off" } as const;

async function gatedIssue(root: string): Promise<Ulid> {
  const { reader, writer } = await open(root, nodePlatform());
  const now = new Date().toISOString();
  const stamp = { version: 1, origin: "", lease_id: null, fencing_token: null, sequence: null };
  const id = makeUlid(Date.now(), nodePlatform().random.bytes(10));
  const issue = newIssue({ id, title: "T", created_at: now, created_by: "human:a", stamp });
  await writer.create([{ issue: { ...issue, state: "gated" }, labels: [], dependencies: [] }]);
  await writer.update(
    id,
    async (current) => withGates(current, ["review"], await readResults(reader, current), []),
    WITHOUT_CLAIM,
  );
  return id;
}

async function pass(root: string, id: Ulid, platform: Platform): Promise<void> {
  const { reader, writer } = await open(root, platform);
  await writer.update(
    id,
    async (current) => {
      const seen = await readResults(reader, current);
      const said = { gate: "review", status: "passed", kind: "manual", by: "human:a" } as const;
      return withResult(current, seen, newResult(platform, said, seen));
    },
    WITHOUT_CLAIM,
  );
}

const seen = async (root: string, id: Ulid) => {
  const { reader } = await open(root, nodePlatform());
  const found = await reader.get(id);
  return { state: found.state, pending: await pendingGates(reader, found) };
};

describe("a gate's pass that is killed", () => {
  it.each([
    [
      "before the new issue stands beside the old one",
      (_: string, p: string) => /issue\.json\.[0-9a-f]{16}\.new$/.test(p),
      false,
    ],
    ["before it is logged", (call: string, p: string) => call === "append" && !p.includes("results"), false],
    ["before the result is written", (_: string, p: string) => p.endsWith("/gates"), true],
    ["before the events are", (_: string, p: string) => p.endsWith("/events"), true],
    [
      "before the issue is put in place",
      (call: string, p: string) => call === "rename" && p.endsWith("issue.json"),
      true,
    ],
  ])("%s leaves all of it or nothing", async (_, dies, isLogged) => {
    const repo = TestRepo.make();
    const id = await gatedIssue(repo.root);
    await expect(pass(repo.root, id, dyingAt(dies))).rejects.toThrow();
    const whole = isLogged ? { state: "done", pending: [] } : { state: "gated", pending: ["review"] };
    expect(await seen(repo.root, id)).toEqual(whole);
    // Whoever comes next finishes it, and nothing is there twice.
    const { reader, session } = await open(repo.root, nodePlatform());
    expect(await settleIssues(reader, 0, (act) => underMutex(session, act))).toBe(isLogged ? 1 : 0);
    expect(await seen(repo.root, id)).toEqual(whole);
    const file = path.join(repo.root, `.cotenant/gates/results/${id}.jsonl`);
    const lines = fs.existsSync(file) ? fs.readFileSync(file, "utf8").split("\n").length - 1 : 0;
    expect(lines).toBe(isLogged ? 1 : 0);
    if (!isLogged) {
      await pass(repo.root, id, nodePlatform());
      expect(await seen(repo.root, id)).toEqual({ state: "done", pending: [] });
    }
  });
});
