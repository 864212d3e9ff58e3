import { spawn, spawnSync } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { buildSync } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nodePlatform } from "../../src/platform/node/node";
import type { ProcessIdentity } from "../../src/platform/platform";

const platform = nodePlatform();
let dir = "";
beforeAll(() => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), "cotenant-node-"));
});
afterAll(() => fs.rmSync(dir, { recursive: true, force: true }));

describe("locks", () => {
  it("exclude a second descriptor of the same process, and are freed by close", async () => {
    const file = path.join(dir, "lock");
    const first = await platform.files.open(file, "update-or-create");
    const second = await platform.files.open(file, "update-or-create");
    expect(platform.locks.tryLock(first)).toBe(true);
    expect(platform.locks.tryLock(second)).toBe(false);
    let got = false;
    const waiting = platform.locks.lock(second).then(() => {
      got = true;
    });
    await platform.timers.sleep(30).done;
    expect(got).toBe(false);
    await platform.files.close(first);
    await waiting;
    expect(got).toBe(true);
    platform.locks.unlock(second);
    await platform.files.close(second);
  });
});

describe("liveness", () => {
  it("knows itself, a dead child, a zombie and a reused pid", async () => {
    const self = platform.processes.self();
    expect(self.startTime).not.toBe("");
    expect(platform.processes.liveness(self)).toBe("alive");
    expect(platform.processes.liveness({ ...self, startTime: "1" })).toBe("dead");

    const child = spawn("sleep", ["60"]);
    const identity = (await platform.processes.identify(child.pid!)) as ProcessIdentity;
    expect(platform.processes.liveness(identity)).toBe("alive");
    const ended = new Promise((resolve) => child.on("exit", resolve));
    child.kill("SIGKILL");
    await ended;
    expect(platform.processes.liveness(identity)).toBe("dead");

    // Whoever never waits leaves its child a zombie. Shells do wait: it dies when there is none any more.
    const parent = spawn("sh", ["-c", "sleep 60 & echo $!; exec sleep 61"], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    const pid = Number(
      await new Promise<string>((resolve) => parent.stdout.once("data", (d) => resolve(String(d)))),
    );
    const soon = async (path: string, pattern: RegExp) => {
      for (let i = 0; i < 500 && !pattern.test(fs.readFileSync(path, "latin1")); i++)
        await platform.timers.sleep(10).done;
      expect(fs.readFileSync(path, "latin1")).toMatch(pattern);
    };
    await soon(`/proc/${parent.pid}/cmdline`, /^sleep/);
    process.kill(pid, "SIGKILL");
    const zombie = { ...self, pid, startTime: "" };
    await soon(`/proc/${pid}/stat`, / Z /);
    expect(platform.processes.liveness(zombie)).toBe("dead");
    parent.kill("SIGKILL");
  });

  it("proves nothing about other machines and namespaces", () => {
    const self = platform.processes.self();
    const gone = { ...self, pid: 4_000_000, startTime: "1" };
    expect(platform.processes.liveness(gone)).toBe("dead");
    expect(platform.processes.liveness({ ...gone, pidNamespace: "1" })).toBe("unknown");
    expect(platform.processes.liveness({ ...gone, timeNamespace: "1" })).toBe("unknown");
    expect(platform.processes.liveness({ ...gone, pidNamespace: "unreadable" })).toBe("unknown");
    expect(platform.processes.liveness({ ...gone, bootId: "other", machineId: "m2" })).toBe("unknown");
    expect(platform.processes.liveness({ ...gone, bootId: "other", machineId: "" })).toBe("unknown");
  });

  it("calls everything of an earlier boot of this machine dead", () => {
    const self = { ...platform.processes.self(), machineId: platform.processes.machineId() || "m" };
    const earlier = { ...self, bootId: "earlier" };
    expect(platform.processes.liveness(earlier)).toBe(
      platform.processes.machineId() === "" ? "unknown" : "dead",
    );
  });

  it("takes no process for dead by a /proc that shows those of another pid namespace", () => {
    const program = path.join(dir, "processes.cjs");
    const entryPoints = [path.join(import.meta.dirname, "../../src/platform/node/processes.ts")];
    buildSync({ entryPoints, outfile: program, bundle: true, platform: "node", format: "cjs" });
    const script = `
      const { NodeProcesses, startTimeOf } = require(${JSON.stringify(program)});
      const { spawn } = require("node:child_process");
      const processes = new NodeProcesses();
      // The shell that started this: what the outer /proc shows under its number is somebody else.
      const shell = { ...processes.self(), pid: 1, startTime: "123456789" };
      const child = spawn("sleep", ["60"]);
      const known = processes.identify(child.pid);
      const seen = [processes.liveness(shell), processes.liveness(processes.self()), processes.liveness(known)];
      child.on("exit", () =>
        console.log(JSON.stringify([...seen, processes.liveness(known), processes.ancestry(1), startTimeOf(1)])));
      child.kill("SIGKILL");`;
    const inner = ["--pid", "--fork", "sh", "-c", '"$@"; exit $?', "sh", process.execPath, "-e", script];
    const ran = spawnSync("unshare", inner, { encoding: "utf8" });
    expect(ran.status, ran.stderr).toBe(0);
    expect(JSON.parse(ran.stdout)).toEqual(["alive", "alive", "alive", "dead", null, null]);
  });

  it("is right in a pid namespace of its own", () => {
    const self = platform.processes.self();
    const inner = spawnSync("unshare", ["--pid", "--fork", "--mount-proc", "readlink", "/proc/self/ns/pid"], {
      encoding: "utf8",
    });
    expect(inner.status, inner.stderr).toBe(0);
    expect(inner.stdout).not.toContain(self.pidNamespace);
  });
});

describe("the environment of another process", () => {
  it.runIf(process.platform === "linux")(
    "is told by the variables that were asked for, and no others",
    async () => {
      const seen = async (env: Record<string, string>) => {
        const child = spawn("/bin/sleep", ["60"], { env, stdio: "ignore" });
        await new Promise((resolve) => child.on("spawn", resolve));
        try {
          return await platform.processes.variables(child.pid!, ["A", "B", "C"]);
        } finally {
          child.kill("SIGKILL");
        }
      };
      expect(await seen({ A: "1=2", B: "", SECRET: "hunter2" })).toEqual({ A: "1=2", B: "" });
      expect(await seen({ SECRET: "hunter2" })).toEqual({});
      expect(await seen({}), "with none, nothing can be told").toBeNull();
      expect(await platform.processes.variables(2 ** 30, ["A"])).toBeNull();
    },
  );
});

describe("files", () => {
  it("say null for what is not there and keep the modes they were asked for", async () => {
    expect(platform.files.readFile(path.join(dir, "none"))).toBeNull();
    expect(platform.files.stat(path.join(dir, "lock", "below-a-file"))).toBeNull();
    expect(platform.files.readDirectory(path.join(dir, "none"))).toBeNull();
    const old = process.umask(0o077);
    try {
      platform.files.makeDirectory(path.join(dir, "shared"), 0o2770);
      const fd = await platform.files.open(path.join(dir, "shared", "f"), "append", 0o660);
      await platform.files.close(fd);
    } finally {
      process.umask(old);
    }
    expect((await platform.files.stat(path.join(dir, "shared")))?.mode).toBe(0o2770);
    expect((await platform.files.stat(path.join(dir, "shared", "f")))?.mode).toBe(0o660);
  });

  it("are on a local disk here", () => {
    expect(platform.files.networkFileSystem(dir)).toBeNull();
  });
});
