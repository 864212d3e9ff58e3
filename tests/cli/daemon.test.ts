import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import {
  freezeDaemon,
  isGone,
  looksAfterDaemon,
  RawClient,
  recordFile,
  recordOf,
  startDaemon,
} from "../support/daemon";
import { oneIn } from "../support/one-in";
import { PROGRAM, start, until } from "../support/program";
import { expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(8);

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
  repo.write("a.txt");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
});

// Processes of their own, always: only those are of the build that the daemon is of.
const askIn = (where: TestRepo, agent: string, ...args: string[]) =>
  where.start(agent, [...args, "--json"]).done;
const ask = (agent: string, ...args: string[]) => askIn(repo, agent, ...args);
const askWith = (env: Record<string, string>, agent: string, ...args: string[]) =>
  repo.start(agent, [...args, "--json"], { env }).done;
const run = (agent: string, ...args: string[]) => repo.start(agent, args).done;
const status = async () => (await ask("agent:a", "daemon", "status")).data as Record<string, unknown>;
const requests = async () => ((await status())["daemon"] as { requests: number }).requests;
const configure = (text: string) => repo.write(".cotenant/config.toml", text);

describe("the life of a daemon", () => {
  it("is one, however many start it at once", async () => {
    looksAfterDaemon(repo);
    const all = await Promise.all([1, 2, 3, 4].map(() => ask("agent:a", "daemon", "start")));
    const pids = new Set(all.map(({ data }) => data["pid"]));
    expect(pids.size).toBe(1);
    expect(all.filter(({ data }) => data["is_new"]).length).toBeLessThanOrEqual(1);
    expect((await status())["state"]).toBe("running");
    expect((await ask("agent:a", "daemon", "stop")).data).toMatchObject({ was_running: true });
    expect((await status())["state"]).toBe("none");
    expect((await ask("agent:a", "daemon", "stop")).data).toMatchObject({ was_running: false });
  });

  it("serves whoever changes leases, and is not needed for it", async () => {
    await startDaemon(repo);
    const before = await requests();
    expect((await ask("agent:a", "lock", "acquire", "a.txt")).status).toBe(0);
    expect((await ask("agent:b", "lock", "acquire", "a.txt")).error.code).toBe("E_LOCK_CONFLICT");
    expect(await requests()).toBeGreaterThanOrEqual(before + 4);
    await run("agent:a", "daemon", "stop");
    expect((await ask("agent:b", "lock", "acquire", "a.txt")).error.code).toBe("E_LOCK_CONFLICT");
    expect((await ask("agent:a", "lock", "release", "a.txt")).status).toBe(0);
    expect((await ask("agent:b", "lock", "acquire", "a.txt")).status).toBe(0);
  });

  it("says where it renews nothing, and with which command it would", async () => {
    await startDaemon(repo);
    const { stderr } = await run("human:me", "daemon", "status");
    expect(stderr).toContain(
      "it renews no leases: for that, cotenant config set coordination.auto_renew_leases true",
    );
    await run("human:me", "config", "set", "coordination.auto_renew_leases", "true");
    expect((await run("human:me", "daemon", "status")).stderr).not.toContain("it renews no leases");
  });

  it("S72: ends by SIGKILL, and everybody goes on; the next one takes its place", async () => {
    const first = await startDaemon(repo);
    await ask("agent:a", "lock", "acquire", "a.txt");
    process.kill(first.pid, "SIGKILL");
    await isGone(first);
    // Its record is still there, and misleads nobody.
    expect(recordOf(repo)).toEqual(first);
    expect((await status())["state"]).toBe("none");
    expect((await ask("agent:b", "lock", "acquire", "a.txt")).error.code).toBe("E_LOCK_CONFLICT");
    expect((await ask("agent:a", "lock", "renew", "a.txt")).status).toBe(0);
    const second = await startDaemon(repo);
    expect(second.pid).not.toBe(first.pid);
    expect((await ask("agent:a", "lock", "release", "a.txt")).status).toBe(0);
  });

  it("S72: is stopped in the middle of everything, and clients go on without it after their deadline", async () => {
    const record = await startDaemon(repo);
    await freezeDaemon(repo, record);
    const begun = performance.now();
    const ran = await ask("agent:a", "lock", "acquire", "a.txt");
    expect(ran.lease.fencing_token).toBe(1);
    expect(performance.now() - begun).toBeLessThan(20_000);
    expect((await status())["state"]).toBe("silent");
    process.kill(record.pid, "SIGCONT");
    await until("it answers again", async () => (await status())["state"] === "running");
    // What it finds in its socket is too late: nothing was granted twice.
    expect((await ask("agent:a", "lock", "status")).data["leases"]).toHaveLength(1);
    expect(repo.log().filter(({ event_type: type }) => type === "claim.acquired")).toHaveLength(1);
  });

  it("is not that of a repository of which this one is a copy", async () => {
    const record = await startDaemon(repo);
    const copy = path.join(scratch(), "copy");
    fs.cpSync(repo.root, copy, { recursive: true });
    const other = TestRepo.of(copy);
    expect(fs.existsSync(recordFile(other))).toBe(true);
    const before = await requests();
    expect((await askIn(other, "agent:a", "lock", "acquire", "a.txt")).status).toBe(0);
    expect((await askIn(other, "agent:a", "daemon", "status")).data["state"]).toBe("none");
    expect(await requests()).toBeLessThan(before + 4);
    expect((await ask("agent:b", "lock", "acquire", "a.txt")).status).toBe(0);
    expect(recordOf(repo)).toEqual(record);
  });

  it("is kept from others: its record, its socket and its log are its user's own", async () => {
    const { socket } = await startDaemon(repo);
    const mode = (file: string) => fs.statSync(file).mode & 0o777;
    expect(mode(recordFile(repo))).toBe(0o600);
    expect(mode(path.dirname(socket))).toBe(0o700);
    expect(socket.length).toBeLessThan(104);
    expect(mode(recordFile(repo).replace(/json$/, "log"))).toBe(0o600);
  });

  it("does not believe a record that others could have written", async () => {
    const record = await startDaemon(repo);
    fs.chmodSync(recordFile(repo), 0o666);
    const before = (await new Promise<number>((resolve) => {
      const client = new RawClient(record.socket);
      client.hello(record);
      void client.ask(1, "status", {}).then(({ result }) => {
        client.socket.destroy();
        resolve((result as { requests: number }).requests);
      });
    })) as number;
    expect((await ask("agent:a", "lock", "acquire", "a.txt")).status).toBe(0);
    fs.chmodSync(recordFile(repo), 0o600);
    expect(await requests()).toBeLessThan(before + 4);
  });

  it("ends in order by a signal that comes as soon as it can be seen", async () => {
    looksAfterDaemon(repo);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      const running = repo.start("agent:a", ["daemon", "run"]);
      // No pause between the looks: the instant is a short one.
      for (const end = Date.now() + 20_000; recordOf(repo) === null && Date.now() < end; )
        await new Promise((resolve) => setImmediate(resolve));
      running.kill(signal);
      const ran = await running.done;
      expect(ran.status, `${ran}`).toBe(0);
      expect(ran.stdout).toContain("asked to by a signal");
      expect(recordOf(repo)).toBeNull();
    }
  });

  it("is not run beside one that runs, and says which one that is", async () => {
    const { pid } = await startDaemon(repo);
    const beside = await repo.start("agent:a", ["daemon", "run"]).done;
    expectRefused(beside, 10, "E_DAEMON");
    expect(beside.stderr).toContain(`a daemon is running already: process ${pid}`);
    expect(beside.stderr).toContain("cotenant daemon stop");
  });

  it("that commands start by themselves is back with the next of them: whoever ends it is told", async () => {
    expect((await run("agent:a", "daemon", "stop")).stderr).not.toContain("starts one again");
    configure("[daemon]\nautostart = true\n");
    await ask("human:me", "trust");
    expect((await run("agent:a", "daemon", "stop")).stderr).toContain(
      "daemon.autostart is on: the next command that changes leases starts one again",
    );
  });

  it("ends by itself when it has nothing to do", async () => {
    looksAfterDaemon(repo);
    const running = repo.start("agent:a", ["daemon", "run", "--idle-exit", "1"]);
    const { status: exit, stdout } = await running.done;
    expect(exit).toBe(0);
    expect(stdout).toContain("nothing to do");
    expect(recordOf(repo)).toBeNull();
  });

  it("ends by itself after daemon.idle_exit_secs, but not while it keeps leases", async () => {
    configure("[daemon]\nidle_exit_secs = 2\n[coordination]\nauto_renew_leases = true\n");
    const record = await startDaemon(repo);
    expect((await ask("agent:a", "lock", "acquire", "a.txt")).status).toBe(0);
    await new Promise((resolve) => setTimeout(resolve, 4_500));
    expect(recordOf(repo)).toEqual(record);
    expect((await ask("agent:a", "lock", "release", "a.txt")).status).toBe(0);
    await isGone(record);
    expect((await status())["state"]).toBe("none");
  });

  it("is started by the command that finds none, where the settings say so", async () => {
    looksAfterDaemon(repo);
    const env = { COTENANT_DAEMON_AUTOSTART: "true" };
    expect((await askWith(env, "agent:a", "lock", "acquire", "a.txt")).status).toBe(0);
    await until("it is there", () => recordOf(repo) !== null);
    const { pid } = recordOf(repo)!;
    expect((await askWith(env, "agent:a", "lock", "renew", "a.txt")).status).toBe(0);
    expect(recordOf(repo)!.pid).toBe(pid);
  });

  it("makes way for its successor when the program was replaced", async () => {
    looksAfterDaemon(repo);
    const root = path.join(__dirname, "../..");
    const home = path.join(scratch(), "program");
    fs.mkdirSync(home);
    for (const part of ["bin", "dist", "package.json"])
      fs.cpSync(path.join(root, part), path.join(home, part), { recursive: true });
    fs.symlinkSync(path.join(root, "node_modules"), path.join(home, "node_modules"));
    const program = path.join(home, "bin/cotenant");
    const call = (...args: string[]) =>
      start([process.execPath, program, ...args], {
        cwd: repo.root,
        env: { ...process.env, COTENANT_AGENT_ID: "agent:a" } as Record<string, string>,
      }).done;
    expect((await call("daemon", "start")).status).toBe(0);
    const first = recordOf(repo)!;
    fs.writeFileSync(path.join(home, "dist/build-id"), "another-build\n");
    expect((await call("lock", "acquire", "a.txt")).status).toBe(0);
    const second = await until("the new one is there", () => {
      const now = recordOf(repo);
      return now !== null && now.pid !== first.pid && now;
    });
    expect(second.build).toBe("another-build");
    await isGone(first);
  });

  it("outlives the worktree in which it was started", async () => {
    const linked = repo.addWorktree("linked");
    looksAfterDaemon(repo);
    expect((await linked.start("agent:a", ["daemon", "start"]).done).status).toBe(0);
    repo.git("worktree", "remove", "--force", linked.root);
    const before = await requests();
    expect((await ask("agent:a", "lock", "acquire", "a.txt")).status).toBe(0);
    expect(await requests()).toBeGreaterThan(before + 2);
  });

  it("says since when it runs", async () => {
    await startDaemon(repo);
    await new Promise((resolve) => setTimeout(resolve, 2_100));
    expect((await run("agent:a", "daemon", "status")).stdout).toMatch(/, up [2-9]s\n/);
  });

  it("goes with its repository", async () => {
    looksAfterDaemon(repo);
    // As often as it looks whether it has something to do.
    const running = repo.start("agent:a", ["daemon", "run", "--idle-exit", "2"]);
    const record = await until("it is there", () => recordOf(repo) ?? false);
    const client = new RawClient(record.socket);
    client.hello(record);
    await client.answer(0);
    fs.rmSync(repo.root, { recursive: true, force: true });
    const { stdout } = await running.done;
    expect(stdout).toContain("its repository is gone");
    client.socket.destroy();
  });

  it("is not started by a call that says no, whatever agent.toml says", async () => {
    const home = path.join(scratch(), "config");
    fs.mkdirSync(path.join(home, "cotenant"), { recursive: true });
    fs.writeFileSync(path.join(home, "cotenant/agent.toml"), "[behavior]\nauto_heartbeat = true\n");
    const env = { XDG_CONFIG_HOME: home, COTENANT_DAEMON_AUTOSTART: "false" };
    expect((await askWith(env, "agent:a", "lock", "acquire", "a.txt")).status).toBe(0);
    expect(fs.existsSync(path.join(repo.root, ".git/cotenant/daemon"))).toBe(false);
  });

  it("prints what systemd and launchd need", async () => {
    const unit = await run("agent:a", "daemon", "install", "--print", "systemd");
    expect(unit.stdout).toContain(`WorkingDirectory=${repo.root}`);
    expect(unit.stdout).toMatch(/^ExecStart=".+" ".+cotenant" "daemon" "run"$/m);
    const name = /> ~\/\.config\/systemd\/user\/(\S+\.service)$/m.exec(unit.stderr)?.[1];
    expect(unit.stderr).toContain(
      [
        "to install it, run:",
        "  mkdir -p ~/.config/systemd/user",
        `  cotenant daemon install --print systemd --quiet > ~/.config/systemd/user/${name}`,
        "  systemctl --user daemon-reload",
        `  systemctl --user enable --now ${name}`,
      ].join("\n"),
    );
    expect((await run("agent:a", "daemon", "install", "--print", "systemd", "--quiet")).stdout).toBe(
      unit.stdout,
    );
    const json = await ask("agent:a", "daemon", "install", "--print", "systemd");
    expect(json.data["file"]).toMatch(new RegExp(`^/.*/\\.config/systemd/user/${name}$`));
    const plist = await ask("agent:a", "daemon", "install", "--print", "launchd");
    expect(plist.data["text"]).toContain("<key>ProgramArguments</key>");
    expect((await ask("agent:a", "daemon", "install")).error).toMatchObject({
      code: "E_USAGE",
      message: "cotenant does not install it; add --print to see the unit and where to put it",
    });
    for (const word of ["cron", "D\u0016ON"]) {
      const refused = await run("agent:a", "daemon", "install", "--print", word);
      expect(refused).toMatchObject({ status: 64 });
      // What the command line says is repeated without what would steer a terminal.
      expect(refused.stderr).toMatch(/^[^\p{Cc}]*"(?:cron|D\ufffdON)"[^\p{Cc}]*\n[^\p{Cc}]*\n$/u);
    }
  });
});

describe("a daemon keeps leases", () => {
  beforeEach(() => configure("[coordination]\nauto_renew_leases = true\n"));

  it("says how many it renews, and how many it leaves to run out", async () => {
    await startDaemon(repo);
    const words = async () => (await run("agent:x", "daemon", "status")).stdout;
    expect(await words()).toContain("  0 leases renewed while their sessions live (0 renewals so far)\n");
    const script = path.join(scratch(), "session.sh");
    fs.writeFileSync(script, `${PROGRAM} lock acquire dying --ttl 600\nexit 0\n`);
    const env = { ...process.env, COTENANT_AGENT_ID: "agent:dying" } as Record<string, string>;
    expect((await start(["/bin/sh", script], { cwd: repo.root, env }).done).status).toBe(0);
    await ask("agent:living", "lock", "acquire", "living");
    const said =
      "  1 lease renewed while its session lives, 1 left to run out: its session is gone (0 renewals so far)";
    await until("both are known", async () => (await words()).includes(said));
    const { daemon } = await status();
    expect(daemon).toMatchObject({ kept: { leases: 2, living: 1, renewed: 0 }, heartbeats: { sessions: 0 } });
  });

  it("of whoever lives, and lets those of the dead run out", async () => {
    await startDaemon(repo);
    // Two that hold a lease of two seconds, and do nothing.
    const holder = (file: string) => {
      const script = `require("child_process").execFileSync(${JSON.stringify(process.execPath)}, ${JSON.stringify([PROGRAM, "lock", "acquire", file, "--ttl", "2"])}); setInterval(() => {}, 1000)`;
      return start([process.execPath, "-e", script], {
        cwd: repo.root,
        env: { ...process.env, COTENANT_AGENT_ID: `agent:${file}` } as Record<string, string>,
      });
    };
    const [living, dying] = [holder("living"), holder("dying")];
    const held = async () =>
      ((await ask("agent:x", "lock", "status")).data["leases"] as unknown as { key: string }[])
        .map(({ key }) => key)
        .sort();
    await until("both hold", async () => (await held()).length === 2);
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    expect(await held()).toEqual(["file:dying", "file:living"]);
    dying.kill("SIGKILL");
    const deadMs = performance.now();
    await until("it has run out", async () => (await held()).length === 1);
    // Renewed at most once after the last look at its process.
    expect(performance.now() - deadMs).toBeLessThan(20_000);
    expect(await held()).toEqual(["file:living"]);
    // What has run out is not kept, and does not keep it from ending.
    const kept = async () => ((await status())["daemon"] as { kept: { leases: number } }).kept.leases;
    await until("one is kept", async () => (await kept()) === 1);
    living.kill("SIGKILL");
  });
});

describe("a running daemon", () => {
  it("hears of settings that change, without being asked for anything", async () => {
    await startDaemon(repo);
    const kept = async () => ((await status())["daemon"] as { kept: { renewed: number } }).kept.renewed;
    const holder = start(
      [
        process.execPath,
        "-e",
        `require("child_process").execFileSync(process.execPath, ${JSON.stringify([PROGRAM, "lock", "acquire", "a.txt", "--ttl", "10"])}); setInterval(() => {}, 1000)`,
      ],
      { cwd: repo.root, env: { ...process.env, COTENANT_AGENT_ID: "agent:a" } as Record<string, string> },
    );
    await until(
      "it is held",
      async () =>
        ((await ask("agent:x", "lock", "status")).data["leases"] as unknown as unknown[]).length === 1,
    );
    // By hand: no command, and so no line in the log, tells of it. The folder comes before the file.
    fs.mkdirSync(path.join(repo.root, ".cotenant"), { recursive: true });
    await new Promise((resolve) => setTimeout(resolve, 200));
    configure("[coordination]\nauto_renew_leases = true\n");
    await until("it is renewed", async () => (await kept()) > 0);
    holder.kill("SIGKILL");
  });

  it("is ended also where its record has another token", async () => {
    const { pid } = await startDaemon(repo);
    const text = fs.readFileSync(recordFile(repo), "utf8");
    fs.writeFileSync(recordFile(repo), text.replace(/"token": "[^"]*"/, '"token": "zz"'));
    const stopped = await run("human:me", "daemon", "stop");
    expect(stopped, String(stopped)).toMatchObject({ status: 0, stdout: `ended: process ${pid}\n` });
    await until("it is gone", () => {
      try {
        process.kill(pid, 0);
        return false;
      } catch {
        return true;
      }
    });
  });
});

describe("a lease whose process has ended", () => {
  beforeEach(() => configure("[coordination]\nauto_renew_leases = true\n"));

  /** A process that runs the command, and lives on. */
  const living = (agent: string, ...args: string[]) => {
    const script = `require("child_process").execFileSync(${JSON.stringify(process.execPath)}, ${JSON.stringify([PROGRAM, ...args])}); console.log("done"); setInterval(() => {}, 1000)`;
    return start([process.execPath, "-e", script], {
      cwd: repo.root,
      env: { ...process.env, COTENANT_AGENT_ID: agent } as Record<string, string>,
    });
  };
  const holderOf = async (key: string) => {
    const all = (await ask("agent:x", "lock", "status")).data["leases"] as unknown as {
      key: string;
      holder: { pid: number };
    }[];
    return all.find((lease) => lease.key === key)?.holder.pid ?? null;
  };

  it.each([
    ["asks for it again", ["lock", "acquire", "a.txt", "--ttl", "6"]],
    ["renews it", ["lock", "renew", "a.txt"]],
  ])("follows its session into the process that %s, and is kept for that", async (_, again) => {
    await startDaemon(repo);
    // Long enough for a busy machine to start the next one in.
    const first = living("agent:a", "lock", "acquire", "a.txt", "--ttl", "6");
    const before = await until("it is held", () => holderOf("file:a.txt"));
    first.kill("SIGKILL");
    await first.done;
    const second = living("agent:a", ...again);
    await until("it has moved", async () => (await holderOf("file:a.txt")) !== before);
    // Longer than it would last by itself.
    await new Promise((resolve) => setTimeout(resolve, 10_000));
    expect(await holderOf("file:a.txt")).not.toBeNull();
    second.kill("SIGKILL");
    await until("it has run out", async () => (await holderOf("file:a.txt")) === null);
  });
});

describe("a daemon shows that sessions are alive", () => {
  it("where agent.toml asks for it, and starts for that", async () => {
    looksAfterDaemon(repo);
    const home = path.join(scratch(), "config");
    fs.mkdirSync(path.join(home, "cotenant"), { recursive: true });
    fs.writeFileSync(
      path.join(home, "cotenant/agent.toml"),
      "[behavior]\nauto_heartbeat = true\nheartbeat_interval = 5\n",
    );
    const env = { XDG_CONFIG_HOME: home };
    const holder = start(["sh", "-c", "exec sleep 60"], { cwd: repo.root });
    const acquired = await askWith(env, "agent:a", "lock", "acquire", "a.txt");
    expect(acquired.status).toBe(0);
    await until("it was started", () => recordOf(repo) !== null);
    const file = path.join(repo.root, ".git/cotenant/heartbeat");
    await until("it beats", () => fs.existsSync(file) && fs.readdirSync(file).length > 0);
    const beat = JSON.parse(fs.readFileSync(path.join(file, fs.readdirSync(file)[0]!), "utf8"));
    expect(beat).toMatchObject({ agent_id: "agent:a", interval_secs: 5 });
    const said = async () => (await askWith(env, "agent:x", "daemon", "status")).data["daemon"];
    await until("it says for whom", async () => JSON.stringify(await said()).includes('"sessions":1'));
    expect((await run("agent:x", "daemon", "status")).stdout).toContain("  heartbeats for 1 session\n");
    holder.kill("SIGKILL");
  });
});
