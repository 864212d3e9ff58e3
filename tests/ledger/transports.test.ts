import * as fs from "node:fs";
import { describe, expect } from "vitest";
import { Hub } from "../support/hub";
import { Machine, sharedIssues } from "../support/machines";
import { oneIn } from "../support/one-in";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(4);

/** How to reach the hub, and what the environment must have for it. */
type Way = (hub: Hub) => Promise<{ url: string; env?: Record<string, string> }>;

/** By path is how everything else is tested. */
const WAYS: Readonly<Record<string, Way>> = {
  "file://": async (hub) => ({ url: `file://${hub.path}` }),
  "git://": async (hub) => ({ url: `git://127.0.0.1:${await hub.daemon()}/hub.git` }),
  "smart HTTP": async (hub) => ({ url: `http://127.0.0.1:${await hub.http()}/hub.git` }),
  SSH: async (hub) => {
    const { command, user } = await hub.ssh();
    return { url: `${user}@127.0.0.1:${hub.path}`, env: { GIT_SSH_COMMAND: command } };
  },
};

describe("over every transport", () => {
  it("claims exclude each other, and data follows", async () => {
    const names = Object.keys(WAYS);
    const { hub, first, ids } = await sharedIssues(names.length);
    const second = Machine.clone(hub, "second");
    for (const [n, name] of names.entries()) {
      const { url, env = {} } = await WAYS[name]!(hub);
      for (const machine of [first, second]) {
        machine.repo.git("remote", "set-url", "origin", url);
        machine.env = env;
      }
      // Another address is another ledger to this machine: its copy is made on the way.
      const id = ids[n]!;
      expect((await first.ask("claim", "acquire", id)).data, name).toMatchObject({
        offline: false,
        retries: 0,
      });
      expectJsonRefused(await second.askHere("claim", "acquire", id), 1, "E_LOCK_CONFLICT");
      expect(hub.claim(id), name).toMatchObject({ agent_id: "agent:first" });
      const edited = { ...first.issue(id), title: `Over ${name}` };
      fs.writeFileSync(first.issueFile(id), `${JSON.stringify(edited, null, 2)}\n`);
      expect((await first.askHere("sync")).data, name).toMatchObject({ pushed: [id] });
      expect(hub.issue(id), name).toMatchObject({ title: `Over ${name}` });
    }
    // And what came by all of them arrives over the last one.
    expect((await second.askHere("sync")).data["written"]).toHaveLength(names.length);
  }, 240_000);
});

describe("credentials", () => {
  it("none: said at once, nobody is asked, and no claim is made", async () => {
    const hub = new Hub();
    const { first, ids } = await sharedIssues(1, { hub, setUp: false });
    const port = await hub.http("ann:sesame");
    first.repo.git("remote", "set-url", "origin", `http://127.0.0.1:${port}/hub.git`);
    expectJsonRefused(await first.ask("claim", "acquire", ids[0]!), 10, "E_AUTH");
    for (const args of [["sync", "--setup-ledger"], ["sync"]])
      expectJsonRefused(await first.askHere(...args), 10, "E_AUTH");
    expect((await first.askHere("claim", "list")).data.leases).toEqual([]);
  });

  it("those of the clone's own configuration are used, and shown to nobody", async () => {
    const hub = new Hub();
    const { first, ids } = await sharedIssues(1, { hub, setUp: false });
    const port = await hub.http("ann:sesame");
    first.repo.git("remote", "set-url", "origin", `http://127.0.0.1:${port}/hub.git`);
    const basic = Buffer.from("ann:sesame").toString("base64");
    first.repo.git("config", `http.http://127.0.0.1:${port}/.extraHeader`, `Authorization: Basic ${basic}`);
    const ran = [
      await first.ask("sync", "--setup-ledger"),
      await first.askHere("claim", "acquire", ids[0]!),
      await first.ask("sync", "--status"),
    ];
    for (const { status, stdout, stderr } of ran) {
      expect(status, stdout).toBe(0);
      expect(stdout + stderr).not.toMatch(new RegExp(`sesame|${basic}`));
    }
    // In the address itself: it reaches neither output nor the names of files.
    first.repo.git("config", "--unset-all", `http.http://127.0.0.1:${port}/.extraHeader`);
    first.repo.git("remote", "set-url", "origin", `http://ann:sesame@127.0.0.1:${port}/hub.git`);
    const again = await first.askHere("sync", "--status");
    expect(again.data).toMatchObject({ online: true, url: `http://127.0.0.1:${port}/hub.git` });
    first.repo.git("remote", "set-url", "origin", `http://ann:wrong@127.0.0.1:${port}/hub.git`);
    const wrong = await first.ask("sync");
    expectJsonRefused(wrong, 10, "E_AUTH");
    expect(wrong.stdout + wrong.stderr).not.toContain("wrong@");
  });

  it("SSH without a key that is let in: said at once, with what to do", async () => {
    const hub = new Hub();
    const { first } = await sharedIssues(1, { hub, setUp: false });
    const { command, user } = await hub.ssh();
    first.repo.git("remote", "set-url", "origin", `${user}@127.0.0.1:${hub.path}`);
    first.env = { GIT_SSH_COMMAND: command.replace(/-i \S+/, "-i /dev/null") };
    const ran = await first.ask("sync", "--setup-ledger");
    expectJsonRefused(ran, 10, "E_AUTH");
    expect(ran.error.hint).toContain("ssh-agent");
  });

  it("insteadOf and pushurl of the clone count", async () => {
    const hub = new Hub();
    const { first, ids } = await sharedIssues(1, { hub, setUp: false });
    first.repo.git("remote", "set-url", "origin", "short:hub.git");
    first.repo.git("config", `url.${hub.room}/.insteadOf`, "short:");
    expect((await first.ask("sync", "--setup-ledger")).status).toBe(0);
    expect((await first.ask("claim", "acquire", ids[0]!)).data).toMatchObject({ offline: false });
    first.repo.git("remote", "set-url", "origin", "../nowhere.git");
    first.repo.git("config", "--unset-all", `url.${hub.room}/.insteadOf`);
    expectJsonRefused(await first.ask("sync"), 10, "E_REMOTE_UNREACHABLE");
  });
});

describe("object formats", () => {
  it("SHA-256 repositories have a ledger too", async () => {
    const hub = new Hub("sha256");
    // Not a clone: of an empty repository, not every Git takes over the format.
    const repo = TestRepo.make(undefined, "sha256");
    repo.git("remote", "add", "origin", hub.path);
    const machine = new Machine("wide", repo, scratch("cotenant-wide"));
    const id = await machine.repo.issue();
    await machine.prepare("sync", "--setup-ledger");
    expect((await machine.ask("claim", "acquire", id)).data).toMatchObject({ offline: false });
    expect(Object.values(hub.refs("refs/cotenant/"))[0]).toHaveLength(64);
    await machine.prepare("sync");
    expect(hub.issue(id)).toMatchObject({ id });
  });
});
