import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { createServer } from "node:net";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { keptScratch } from "../docs/kept-scratch";
import { oneIn } from "../support/one-in";
import { A, newRequestId, publish, put, withFiles } from "./publish-stage";

const it = oneIn(8);

/** One repository for all: each test has a remote and a branch of its own. */
const room = keptScratch("cotenant-push");
const repo = withFiles(path.join(room, "repo"));
const taken = repo.ask(A, "lock", "acquire", "--dir", ".", "--ttl", "7200");

/** The folder of a remote; `hook` is what one of its hooks does. */
function remote(name: string, hook: { name: string; does: string } | null = null): string {
  const folder = path.join(room, `${name}.git`);
  execFileSync("git", ["init", "--quiet", "--bare", folder]);
  repo.git("remote", "add", name, folder);
  if (hook !== null)
    fs.writeFileSync(path.join(folder, "hooks", hook.name), `#!/bin/sh\n${hook.does}\n`, { mode: 0o755 });
  return folder;
}

async function push(name: string, ...args: string[]) {
  await taken;
  return publish(repo, "--branch", `work/${name}`, ...put("src/a.ts", `${name}\n`), "--push", ...args);
}

const tip = (where: string, branch: string) =>
  execFileSync("git", ["rev-parse", branch], { cwd: where, encoding: "utf8" }).trim();

describe("--push", () => {
  it("pushes the branch, and says so: to origin, or where the branch belongs", async () => {
    const [origin, own] = [remote("origin"), remote("own")];
    const { data } = await push("plain");
    expect(data["push"]).toEqual({ remote: "origin", result: "pushed" });
    expect(tip(origin, "work/plain")).toBe(data["commit"]);
    expect(repo.log().map((line) => line.event_type)).toContain("publish.pushed");
    repo.git("config", "branch.work/owned.remote", "own");
    const owned = await push("owned");
    expect(owned.data["push"]).toEqual({ remote: "own", result: "pushed" });
    expect(tip(own, "work/owned")).toBe(owned.data["commit"]);
  });

  it("that the remote refuses is told, with the commit that is here; and is tried again with the same id", async () => {
    const folder = remote("strict", {
      name: "pre-receive",
      does: "echo no; echo 'ask the owners' >&2; exit 1",
    });
    const args = ["--remote", "strict", "--request-id", newRequestId()];
    const { error, status } = await push("refused", ...args);
    expect([error.code, status]).toEqual(["E_PUSH_REJECTED", 1]);
    expect(error.message).toContain("pre-receive hook declined");
    for (const word of ["remote: no", "remote: ask the owners"]) expect(error.message).toContain(word);
    const about = repo.log().filter((line) => JSON.stringify(line.payload).includes("work/refused"));
    const types = about.map((line) => line.event_type);
    expect(types).toContain("publish.push_failed");
    expect(types).not.toContain("publish.pushed");
    const shown = await repo.runHere(A, "events", "--type", "publish.push_failed");
    expect(shown.stdout).toContain("publish.push_failed");
    expect(error.data["commit"]).toBe(tip(repo.root, "work/refused"));
    fs.rmSync(path.join(folder, "hooks/pre-receive"));
    const again = await push("refused", ...args);
    expect(again.data).toMatchObject({ replayed: true, push: { result: "pushed" } });
    expect(tip(folder, "work/refused")).toBe(again.data["commit"]);
    expect(repo.git("rev-list", "--count", "main..work/refused").trim()).toBe("1");
  });

  it("whose answer is lost is settled by asking the remote", async () => {
    // It has it, and then the connection breaks.
    remote("breaking", { name: "post-receive", does: "kill -9 $PPID" });
    const { data } = await push("lost", "--remote", "breaking");
    expect(data["push"]).toEqual({ remote: "breaking", result: "verified" });
  });

  it("whose connection breaks may have arrived: where the remote cannot be asked either, nobody says that it failed", async () => {
    const breaking = createServer((socket) => socket.once("data", () => socket.resetAndDestroy()));
    await new Promise<void>((resolve) => breaking.listen(0, "127.0.0.1", resolve));
    const { port } = breaking.address() as { port: number };
    repo.git("remote", "add", "reset", `git://127.0.0.1:${port}/x.git`);
    const { error } = await push("reset", "--remote", "reset");
    breaking.close();
    expect(error.data["push"]).toBe("unknown");
    expect(error.data["commit"]).toBe(tip(repo.root, "work/reset"));
  });

  it("that takes too long is given up, and never asks anybody anything", async () => {
    const silent = createServer(() => {}).listen(0, "127.0.0.1");
    await new Promise((resolve) => silent.once("listening", resolve));
    const { port } = silent.address() as { port: number };
    repo.git("remote", "add", "silent", `git://127.0.0.1:${port}/x.git`);
    await taken;
    const args = ["--branch", "work/slow", "--message", "m", ...put("src/a.ts", "x\n"), "--push"];
    const env = { COTENANT_PUBLISH_PUSH_TIMEOUT_SECS: "1" };
    const { error } = await repo.askWith(env, A, "publish", ...args, "--remote", "silent");
    silent.close();
    expect(error.code).toBe("E_REMOTE_UNREACHABLE");
    expect(error.data["commit"]).toBe(tip(repo.root, "work/slow"));
  });
});
