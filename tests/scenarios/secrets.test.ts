import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { pictureOf, TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(5);

let repo: TestRepo;
let id: string;
beforeEach(async () => {
  repo = TestRepo.make();
  id = await repo.issue();
});

/** A file with a secret in it, as a script would keep it. */
function kept(secret: string): string {
  const file = path.join(scratch(), "secret");
  fs.writeFileSync(file, `${secret}\n`, { mode: 0o600 });
  return file;
}

async function claimedSecret(): Promise<string> {
  const { secret } = (await repo.ask("agent:a", "claim", "acquire", id, "--print-secret")).data;
  expect(secret).toMatch(/^[\w-]{43}$/);
  return secret;
}

describe("S48: a wrong token", () => {
  it("exits with 6 and changes nothing", async () => {
    const secret = await claimedSecret();
    const before = repo.logText();
    for (const verb of ["release", "renew", "heartbeat"]) {
      const byFile = await repo.run("agent:a", "claim", verb, id, "--secret-file", kept(`${secret}x`));
      expectRefused(byFile, 6, "E_LOCK_NOT_HELD");
      const byVariable = await repo.askWith({ COTENANT_SECRET: "wrong" }, "agent:a", "claim", verb, id);
      expectJsonRefused(byVariable, 6, "E_LOCK_NOT_HELD");
    }
    expect(repo.logText()).toBe(before);
    expect((await repo.ask("agent:a", "claim", "release", id, "--secret-file", kept(secret))).status).toBe(0);
  });

  it("is what a former holder has: it cannot release the successor's lease", async () => {
    const old = await claimedSecret();
    await repo.prepare("human:ada", "claim", "force-evict", id, "--reason", "r");
    const { lease } = await repo.prepare("agent:b", "claim", "acquire", id);
    const ran = await repo.ask("agent:b", "claim", "release", lease.lease_id, "--secret-file", kept(old));
    expectJsonRefused(ran, 6, "E_LOCK_NOT_HELD");
    expect((await repo.askHere("agent:b", "claim", "renew", id)).status).toBe(0);
  });

  it("the right one works for whoever was given it, from a file or from the environment", async () => {
    const secret = await claimedSecret();
    const byFile = await repo.ask("agent:a", "claim", "renew", id, "--secret-file", kept(secret));
    expect(byFile.status).toBe(0);
    const byOldName = await repo.ask("agent:a", "claim", "renew", id, "--token", kept(secret));
    expect(byOldName.json.warnings).toEqual([expect.stringContaining("--secret-file")]);
    const env = { COTENANT_SECRET: secret };
    expect((await repo.askWith(env, "agent:a", "claim", "release", id, "--session", "script")).status).toBe(
      0,
    );
  });
});

describe("S48: no token appears", () => {
  it("in what a command prints without being asked for it", async () => {
    const secret = await claimedSecret();
    const looks = [
      ["claim", "acquire", id],
      ["claim", "renew", id],
      ["claim", "heartbeat", id],
      ["claim", "status"],
      ["claim", "list"],
      ["status"],
      ["lock", "status", "--all"],
      ["issue", "show", id],
      ["issue", "list"],
      ["worktree", "info"],
      ["worktree", "list"],
      ["gc"],
      ["recover"],
      ["claim", "release", id],
    ];
    for (const look of looks) {
      for (const ran of [await repo.runHere("agent:a", ...look), await repo.ask("agent:a", ...look)])
        expect(ran.stdout + ran.stderr, look.join(" ")).not.toContain(secret);
    }
  });

  it("in the log, nor in any file but the private one", async () => {
    const secret = await claimedSecret();
    await repo.ask("agent:a", "claim", "renew", id);
    await repo.prepare("agent:a", "claim", "heartbeat", id);
    await repo.prepare("agent:a", "gc", "--compact");
    await repo.prepare("agent:a", "claim", "release", id);
    expect(repo.logText()).not.toContain(secret);
    const places = Object.entries(pictureOf(repo.root))
      .filter(([, content]) => Buffer.from(content.split(" ")[1] ?? "", "base64").includes(secret))
      .map(([file, content]) => `${content.split(" ")[0]} ${file}`);
    for (const place of places)
      expect(place).toMatch(/^600 \.git\/cotenant\/secrets\/agent%3aa\/default\.json$/);
  });

  it("in argv of running processes, ours or our children's", async () => {
    const secret = await claimedSecret();
    const seen = path.join(scratch(), "argv");
    const shim = scratch();
    const git = repo.git("--exec-path").trim();
    fs.writeFileSync(
      path.join(shim, "git"),
      `#!/bin/sh\nprintf '%s\\n' "$@" >>${seen}\ncat /proc/[0-9]*/cmdline >>${seen} 2>/dev/null\nexec ${git}/git "$@"\n`,
      { mode: 0o755 },
    );
    const env = { PATH: `${shim}:${process.env["PATH"]}`, COTENANT_SECRET: secret };
    const asHolder = (...args: string[]) => repo.askWith(env, "agent:a", ...args);
    expect((await asHolder("claim", "heartbeat", id)).status).toBe(0);
    const short = (await repo.prepare("agent:a", "issue", "show", id)).issue.short_id;
    expect((await asHolder("claim", "renew", short)).status).toBe(0);

    const waiter = repo.start("agent:b", ["claim", "acquire", id, "--wait", "--print-secret", "--json"], {
      env,
    });
    await until("it waits", () => waiter.stderr.includes("waiting as number 1"));
    const argv = fs.readFileSync(`/proc/${waiter.pid}/cmdline`, "utf8");
    expect(argv).toContain("--print-secret");
    expect(argv).not.toContain(secret);
    expect((await asHolder("claim", "release", short, "--secret-file", kept(secret))).status).toBe(0);
    const handed = (await waiter.done).data.secret;

    const everything = fs.readFileSync(seen, "utf8");
    expect(everything, "the shim was used").toContain("cat-file");
    for (const one of [secret, handed]) expect(everything).not.toContain(one);
  });
});
