import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { run, start } from "../support/program";
import { pictureOf } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(5);

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** A machine of its own: an empty home, and nothing on the path but Node, Git and what the package brought. */
class NewUser {
  readonly home = scratch("first-hour");
  readonly repository = path.join(this.home, "shop");
  readonly program = path.join(this.home, "tools/node_modules/.bin/cotenant");

  /** As `npm install --global` would, from the tarball that would be published. */
  install(): void {
    const options = { cwd: this.home, env: this.env(), encoding: "utf8" as const };
    const packed = execFileSync("npm", ["pack", "--silent", "--ignore-scripts", ROOT], options).trim();
    const flags = ["--prefix", "tools", "--offline", "--no-audit", "--no-fund", "--silent"];
    execFileSync("npm", ["install", ...flags, path.join(this.home, packed)], options);
  }

  env(agent?: string): Record<string, string | undefined> {
    return {
      HOME: this.home,
      XDG_CONFIG_HOME: undefined,
      NO_COLOR: undefined,
      COTENANT_AGENT_ID: agent,
      npm_config_cache: path.join(this.home, ".npm"),
      npm_config_userconfig: path.join(this.home, ".npmrc"),
    };
  }

  git(...args: string[]): void {
    execFileSync("git", args, { cwd: this.repository });
  }

  as(agent: string | undefined, ...args: string[]) {
    return run([this.program, ...args], { cwd: this.repository, env: this.env(agent) });
  }
}

describe("the first hour of a new user", () => {
  const user = new NewUser();
  let before: Record<string, string>;

  beforeAll(() => {
    user.install();
    fs.mkdirSync(path.join(user.repository, "src"), { recursive: true });
    fs.writeFileSync(path.join(user.repository, "src/app.ts"), "export {};\n");
    user.git("init", "--quiet");
    user.git("add", "--all");
    user.git("commit", "--quiet", "--message", "first");
    before = pictureOf(user.repository);
  });

  it("goes from an installed tarball to a repository as it was", async () => {
    expect((await user.as(undefined, "version")).stdout).toMatch(/^cotenant \d+\.\d+\.\d+/);
    expect((await user.as(undefined, "--help")).stdout).toContain("lock");

    // Nobody has said who is asking: the error has the line that does.
    const nobody = await user.as(undefined, "lock", "acquire", "src/app.ts");
    expect(nobody.status).toBe(10);
    expect(nobody.stderr).toContain("COTENANT_AGENT_ID");

    expect((await user.as("human:eve", "init")).stdout).toContain("next:");

    // Two agents, a conflict.
    const ada = await user.as("agent:ada", "lock", "acquire", "src/app.ts", "--ttl", "120", "--json");
    expect(ada.lease.fencing_token).toBe(1);
    const bob = await user.as("agent:bob", "lock", "acquire", "--dir", "src");
    expect(bob.status).toBe(1);
    expect(bob.stderr).toContain("held by agent:ada");

    // A wait: bob stands in line until ada is done.
    const waiting = start(
      [user.program, "lock", "acquire", "src/app.ts", "--wait", "--timeout", "60", "--json"],
      {
        cwd: user.repository,
        env: user.env("agent:bob"),
      },
    );
    for (let n = 0; n < 200 && !waiting.stderr.includes("waiting as number 1"); n++)
      await new Promise((resolve) => setTimeout(resolve, 50));
    expect((await user.as("agent:ada", "lock", "release", "src/app.ts")).status).toBe(0);
    expect((await waiting.done).lease).toMatchObject({ agent_id: "agent:bob", fencing_token: 2 });

    // A steal: not for an agent, for a person with a reason; the old holder is fenced off.
    const refused = await user.as("agent:ada", "lock", "steal", "src/app.ts", "--reason", "mine");
    expect(refused.status).toBe(9);
    const stolen = await user.as(
      "human:eve",
      "lock",
      "steal",
      "src/app.ts",
      "--reason",
      "bob is gone",
      "--json",
    );
    expect(stolen.lease).toMatchObject({ agent_id: "human:eve", fencing_token: 3 });
    expect((await user.as("agent:bob", "lock", "release", "src/app.ts")).status).toBe(8);

    expect((await user.as("human:eve", "status")).stdout).toMatch(/\* {2}file:src\/app\.ts +human:eve/);
    expect((await user.as("human:eve", "events")).stdout).toContain("bob is gone");
    const stats = await user.as("human:eve", "stats", "--json");
    expect(stats.data["stats"] ?? stats.data).toBeTruthy();
    expect((await user.as("human:eve", "stats")).stdout).toContain("file:src/app.ts");
    const doctor = await user.as("human:eve", "doctor");
    expect(doctor.status, doctor.toString()).toBe(0);

    // Gone without a trace, once nobody holds anything; what is versioned stays for Git to decide.
    await user.as("human:eve", "lock", "release", "src/app.ts");
    const deinit = await user.as("human:eve", "deinit");
    expect(deinit.status, deinit.toString()).toBe(0);
    fs.rmSync(path.join(user.repository, ".cotenant"), { recursive: true });
    expect(pictureOf(user.repository)).toEqual(before);
  });
});
