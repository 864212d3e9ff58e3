import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { freezeDaemon, looksAfterDaemon, recordOf } from "../support/daemon";
import { type Machine, sharedIssues } from "../support/machines";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import { scratch } from "../support/scratch";

const it = oneIn(4);

/** A daemon does not go by the variables of whoever starts it: its settings are in a file. */
async function startDaemonOn(machine: Machine, more = ""): Promise<void> {
  const folder = path.join(machine.home, ".config/cotenant");
  fs.mkdirSync(folder, { recursive: true });
  const settings = `[sync]\nledger_branch = "cotenant-sync"\nclock_skew_secs = 1\n${more}`;
  fs.writeFileSync(path.join(folder, "config.toml"), settings);
  looksAfterDaemon(machine.repo);
  const started = await machine.start(["daemon", "start"]).done;
  expect(started.status, String(started)).toBe(0);
}

async function ask(machine: Machine, ...args: string[]) {
  return machine.start([...args, "--json"]).done;
}

/** As a host that was moved: everything is there under another address. */
function moved(hubPath: string, machine: Machine) {
  const other = path.join(scratch("cotenant-moved"), "new.git");
  execFileSync("cp", ["-a", hubPath, other]);
  machine.repo.git("remote", "set-url", "origin", other);
  const git = (...args: string[]) => execFileSync("git", ["-C", other, ...args], { encoding: "utf8" }).trim();
  const ref = (id: string) => `refs/cotenant/claims/${id}`;
  return {
    subject: (id: string) => git("log", "-1", "--format=%s", ref(id)),
    count: (id: string) => Number(git("rev-list", "--count", ref(id))),
  };
}

describe("with a daemon and a ledger", () => {
  it("claims of the command line go through the daemon, and an interrupted one is given up", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    await startDaemonOn(first);
    expect((await ask(first, "claim", "acquire", ids[0]!)).status).toBe(0);
    const pushed = first.repo.log().filter(({ event_type: type }) => type === "sync.confirmed");
    expect(pushed.map(({ actor }) => (actor as unknown as { pid: number }).pid)).toEqual([
      recordOf(first.repo)!.pid,
    ]);
    const hook = path.join(hub.path, "hooks/pre-receive");
    const begun = path.join(hub.room, "begun");
    fs.writeFileSync(hook, `#!/bin/sh\ncat >/dev/null\n: > '${begun}'\nsleep 3\n`, { mode: 0o755 });
    const running = first.start(["claim", "acquire", ids[1]!, "--json"]);
    await until("the push has begun", () => fs.existsSync(begun));
    running.kill("SIGINT");
    const { status, stdout } = await running.done;
    expect(status, stdout).not.toBe(0);
    expect(stdout).toContain("interrupted");
    fs.rmSync(hook);
    const { leases } = (await ask(first, "claim", "list")).data as unknown as { leases: { key: string }[] };
    expect(leases.map(({ key }) => key)).toEqual([`issue:${ids[0]}`]);
    expect((await ask(first, "sync")).status).toBe(0);
    const claims = hub.refs("refs/cotenant/claims/");
    if (`refs/cotenant/claims/${ids[1]}` in claims)
      expect(hub.claim(ids[1]!)).not.toMatchObject({ status: "held" });
  });

  it("what is released goes to the remote that the clone has at that instant", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    await startDaemonOn(first);
    for (const id of ids) expect((await ask(first, "claim", "acquire", id)).status).toBe(0);
    expect((await ask(first, "claim", "release", ids[0]!)).status).toBe(0);
    const there = moved(hub.path, first);
    expect((await ask(first, "claim", "release", ids[1]!)).status).toBe(0);
    expect(there.subject(ids[1]!)).toMatch(/^Release/);
  });

  it("renewals go to the remote that the clone has by then", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    await startDaemonOn(first, "[coordination]\nauto_renew_leases = true\n");
    const claim = ["claim", "acquire", ids[0]!, "--ttl", "10"];
    expect((await ask(first, ...claim)).status).toBe(0);
    await until("it was renewed", () => hub.subjects(ids[0]!).length > 1);
    const there = moved(hub.path, first);
    const [here, before] = [hub.subjects(ids[0]!).length, there.count(ids[0]!)];
    await until("it is renewed there", () => there.count(ids[0]!) > before);
    expect(hub.subjects(ids[0]!)).toHaveLength(here);
  });

  it("a copy of the ledger that is damaged again and again is mended each time, and said so", async () => {
    const { first, ids } = await sharedIssues(2);
    await startDaemonOn(first);
    for (const id of ids) expect((await ask(first, "claim", "acquire", id)).status).toBe(0);
    const data = path.join(first.home, ".local/share/cotenant");
    const copy = path.join(data, fs.readdirSync(data).find((name) => name.startsWith("hub-"))!, "ledger.git");
    const objects = path.join(copy, "objects");
    for (let round = 0; round < 3; round++) {
      fs.rmSync(objects, { recursive: true });
      fs.mkdirSync(objects);
      const beaten = await ask(first, "claim", "heartbeat", ids[0]!);
      expect(beaten.status, String(beaten)).toBe(0);
      expect(beaten.stdout).toContain("made anew");
    }
    fs.writeFileSync(path.join(copy, "packed-refs"), "garbage\n");
    const released = await ask(first, "claim", "release", ids[1]!);
    expect(released.status, String(released)).toBe(0);
    expect(released.stdout).toContain("made anew");
  });

  it("a confirmation that comes late does not replace that of a later lease", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    await startDaemonOn(first);
    const hook = path.join(hub.path, "hooks/pre-receive");
    const begun = path.join(hub.room, "begun");
    fs.writeFileSync(hook, `#!/bin/sh\ncat >/dev/null\n: > '${begun}'\nsleep 2\n`, { mode: 0o755 });
    const daemon = recordOf(first.repo)!;
    const claiming = first.start(["claim", "acquire", id, "--json"]);
    await until("the push has begun", () => fs.existsSync(begun));
    await freezeDaemon(first.repo, daemon);
    expect((await claiming.done).status).toBe(0);
    fs.rmSync(hook);
    const direct = (...args: string[]) => first.start([...args, "--json"], { COTENANT_NO_DAEMON: "1" }).done;
    expect((await direct("claim", "release", id)).status).toBe(0);
    expect((await direct("claim", "acquire", id)).status).toBe(0);
    const standing = async () =>
      (
        (await direct("claim", "list")).data as unknown as { leases: { lease_id: string; ledger: string }[] }
      ).leases.map(({ lease_id, ledger }) => [lease_id, ledger]);
    const before = await standing();
    process.kill(daemon.pid, "SIGCONT");
    await until("the daemon has gone on", async () => {
      const { data } = await ask(first, "daemon", "status");
      return data["state"] === "running";
    });
    // What it had begun is over when its log has nothing more to come.
    let length = 0;
    await until("the log is at rest", async () => {
      const now = first.repo.log().length;
      const isSame = now === length;
      length = now;
      await new Promise((resolve) => setTimeout(resolve, 500));
      return isSame;
    });
    expect(await standing()).toEqual(before);
  });
});
