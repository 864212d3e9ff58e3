import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { Workspace } from "../../src/coordinator/workspace";
import { CHECKS, diagnose } from "../../src/features/doctor/checks";
import {
  capped,
  exitOf,
  type Finding,
  error as failed,
  note,
  summaryOf,
  warning,
} from "../../src/features/doctor/finding";
import { examine, type Patient } from "../../src/features/doctor/patient";
import type { FencingToken, LeaseId } from "../../src/kernel/ids";
import type { LeaseKey } from "../../src/kernel/keys";
import type { Lease } from "../../src/kernel/lease";
import { nodeGit } from "../../src/platform/git-node";
import { nodePlatform } from "../../src/platform/node/node";
import { NODE_TOOLS } from "../../src/platform/node/this-machine";
import type { Clock, Files, Platform, Processes } from "../../src/platform/platform";
import { encodeLine } from "../../src/store/envelope";
import { leaseToWire } from "../../src/store/wire";
import { git } from "../identity/temporary";
import { actor, lease as sample } from "../store/samples";
import { scratch } from "../support/scratch";

const real = nodePlatform();
let root: string;
beforeEach(() => {
  root = path.join(scratch(), "repo");
  fs.mkdirSync(root);
  git(root, "init", "--quiet");
});

/** The real machine, but for these. */
function machine(parts: {
  clock?: Partial<Clock>;
  processes?: Partial<Processes>;
  files?: Partial<Files>;
}): Platform {
  const over = <T extends object>(whole: T, part: Partial<T> = {}): T =>
    new Proxy(whole, {
      get: (target, name) => {
        const value = Reflect.get(part, name) ?? Reflect.get(target, name);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  return {
    ...real,
    clock: over(real.clock, parts.clock),
    processes: over(real.processes, parts.processes),
    files: over(real.files, parts.files),
  };
}

function place(platform: Platform = real) {
  const home = path.join(root, "../home");
  return { platform, git: nodeGit(), env: {}, cwd: root, home, systemDirectory: path.join(root, "../etc") };
}

async function findings(check: string, platform: Platform = real): Promise<Finding[]> {
  const patient = await examine(place(platform));
  return diagnose(
    patient,
    CHECKS.filter(({ name }) => name === check),
  );
}

async function acquire(file: string): Promise<void> {
  const session = await (
    await Workspace.open({ ...place(), tools: NODE_TOOLS, isTerminal: false }, { agentId: "agent:a" })
  ).session("write");
  await session.acquire([{ key: `file:${file}` as LeaseKey, reach: "repository" }], { ttlSecs: 600 });
}

/** A log that says that these leases stand, whether it could have come to that or not. */
function writeLog(leases: readonly Lease[], wallMs = Date.now()): void {
  const control = path.join(root, ".git/cotenant");
  fs.mkdirSync(control, { mode: 0o700 });
  const payload = {
    ...{ segment: 1, part: 1, parts: 1, next_sequence: 2, next_token: 100 },
    ...{ leases: leases.map(leaseToWire), endings: [], requests: [] },
  };
  const entry = { type: "log.checkpoint", actor, payload };
  const { text } = encodeLine(real.digest, entry, { sequence: 1, wallMs, synced: 0, prev: "" });
  fs.writeFileSync(path.join(control, "claims.jsonl"), text, { mode: 0o600 });
}

/** A lease of this boot that is in force. */
function standing(fields: Partial<Lease>): Lease {
  const now = { wallMs: Date.now(), monotonicMs: real.clock.monotonicMs(), clockId: real.clock.clockId() };
  const later = { ...now, wallMs: now.wallMs + 600_000, monotonicMs: now.monotonicMs + 600_000 };
  return { ...sample, acquiredAt: now, renewedAt: now, lastBeat: now, expiresAt: later, ...fields };
}

const one = (number: number, fields: Partial<Lease> = {}) =>
  standing({
    leaseId: `01KDVDNA0${number}YW26MSR5DMWESBAC` as LeaseId,
    key: `file:${number}.ts` as LeaseKey,
    fencingToken: number as FencingToken,
    ...fields,
  });

describe("the clock", () => {
  const clock = (shiftMs: number) => machine({ clock: { wallMs: () => Date.now() + shiftMs } });

  it("is fine", async () => {
    await acquire("a.ts");
    expect(await findings("clock")).toMatchObject([{ level: "ok" }]);
  });

  it("was set back behind the newest line", async () => {
    await acquire("a.ts");
    const [first, ...more] = await findings("clock", clock(-7_300_000));
    expect(first).toMatchObject({ level: "warning", message: expect.stringContaining("2 h behind") });
    expect(more).toEqual([]);
  });

  it("was set back a little, which only a lease of this boot can tell", async () => {
    const { clock } = real;
    const ahead = {
      wallMs: Date.now() + 600_000,
      monotonicMs: clock.monotonicMs(),
      clockId: clock.clockId(),
    };
    writeLog([one(1, { renewedAt: ahead })], Date.now() - 1_000);
    expect(await findings("clock")).toMatchObject([
      { level: "warning", message: expect.stringContaining("set back by 10 min") },
    ]);
  });

  it("was set forward, or the machine slept: worth a note", async () => {
    await acquire("a.ts");
    expect(await findings("clock", clock(3 * 86_400_000))).toMatchObject([
      { level: "note", message: expect.stringContaining("3 days further") },
    ]);
  });

  it.each([0, Date.UTC(2150, 0, 1)])("cannot be right: %i", async (wallMs) => {
    expect(await findings("clock", machine({ clock: { wallMs: () => wallMs } }))).toMatchObject([
      { level: "warning", message: expect.stringContaining("cannot be right") },
    ]);
  });

  it("has no boot to go by: an error, and everything else is still looked at", async () => {
    await acquire("a.ts");
    const unreadable = () => {
      throw Object.assign(new Error("no such file"), { code: "ENOENT" });
    };
    const bootless = machine({ clock: { clockId: unreadable }, processes: { self: unreadable } });
    const found = await diagnose(await examine(place(bootless)), CHECKS);
    const errors = found.filter(({ level }) => level === "error");
    expect(errors).toMatchObject([{ check: "clock", message: expect.stringContaining("boot's id") }]);
    expect(found.filter(({ check }) => check === "log")).toMatchObject([{ level: "ok" }]);
  });

  it("is in namespaces that cannot be read, on a machine without an id", async () => {
    const self = {
      ...real.processes.self(),
      pidNamespace: "unreadable",
      timeNamespace: "unreadable",
      machineId: "",
    };
    const levels = (await findings("clock", machine({ processes: { self: () => self } }))).map(
      ({ level }) => level,
    );
    expect(levels).toEqual(["warning", "warning", "note"]);
  });

  it("is in another time namespace than a lease", async () => {
    const clockId = `${real.clock.clockId()}9`;
    writeLog([one(1, { renewedAt: { wallMs: Date.now(), monotonicMs: 1, clockId } })]);
    expect(await findings("clock")).toMatchObject([
      { level: "note", message: expect.stringContaining("1 lease of another time namespace") },
    ]);
  });
});

describe("leases that cannot be", () => {
  it("two that exclude each other", async () => {
    writeLog([one(1), one(2, { key: "dir:." as LeaseKey, agentId: "agent:z" as Lease["agentId"] })]);
    const found = await findings("leases");
    expect(found[0]).toMatchObject({ level: "error", data: { code: "E_LOG_CORRUPT" } });
    expect(found[0]!.message).toMatch(/file:1\.ts .* dir:\. of agent:z exclude each other/);
    expect(exitOf(found)).toBe(13);
  });

  it("of one party they may overlap", async () => {
    writeLog([one(1), one(2, { key: "dir:." as LeaseKey })]);
    expect((await findings("leases")).filter(({ level }) => level === "error")).toEqual([]);
  });

  it("with one token, or with one that was not given yet", async () => {
    writeLog([
      one(1),
      one(2, { fencingToken: 1 as FencingToken }),
      one(3, { fencingToken: 100 as FencingToken }),
    ]);
    const messages = (await findings("leases"))
      .filter(({ level }) => level === "error")
      .map(({ message }) => message);
    expect(messages).toEqual([
      expect.stringContaining("the token 1 was given twice"),
      expect.stringContaining("not given yet"),
    ]);
  });
});

describe("a log that grows while it is read", () => {
  it("is not short of the lines that were promised meanwhile", async () => {
    await acquire("a.ts");
    let isFirst = true;
    const read: Files["read"] = async (fd, offset, length) => {
      if (isFirst) {
        isFirst = false;
        await acquire("b.ts");
      }
      return real.files.read(fd, offset, length);
    };
    expect(await findings("log", machine({ files: { read } }))).toMatchObject([{ level: "ok" }]);
    expect(isFirst).toBe(false);
  });
});

describe("one agent id for two processes", () => {
  const parent = real.processes.identify(process.ppid);

  it("is reported with their pids", async () => {
    const holder = real.processes.self();
    writeLog([
      one(1, { bind: "process", expiresAt: null, holder }),
      one(2, { bind: "process", expiresAt: null, holder: (await parent)! }),
    ]);
    expect(await findings("agents")).toMatchObject([
      { level: "warning", data: { agent_id: sample.agentId, pids: [process.pid, process.ppid] } },
    ]);
  });

  it("is none when one of them is gone, or both are the same", async () => {
    const holder = real.processes.self();
    writeLog([one(1, { holder }), one(2, { holder }), one(3)]);
    expect(await findings("agents")).toMatchObject([{ level: "ok" }]);
  });
});

describe("the file system", () => {
  const network = machine({ files: { networkFileSystem: () => "NFS" } });

  it("is on the network: an error, and a warning where somebody allowed it", async () => {
    expect(await findings("file-system", network)).toMatchObject([
      { level: "error", data: { code: "E_NETWORK_FS" } },
    ]);
    fs.mkdirSync(path.join(root, ".git/cotenant"));
    fs.writeFileSync(path.join(root, ".git/cotenant/allow-network-fs"), "");
    expect(await findings("file-system", network)).toMatchObject([{ level: "warning" }]);
  });
});

describe("examining", () => {
  it("goes on with the defaults where a file of the configuration cannot be read", async () => {
    const readFile: Files["readFile"] = (file) => {
      if (file.endsWith(".cotenant/config.toml"))
        throw Object.assign(new Error("denied"), { code: "EACCES" });
      return real.files.readFile(file);
    };
    const found = await diagnose(await examine(place(machine({ files: { readFile } }))), CHECKS);
    const errors = found.filter(({ level }) => level === "error");
    expect(errors).toMatchObject([{ check: "config", data: { code: "E_CONFIG" } }]);
    expect(errors[0]!.message).toContain("config.toml");
  });

  it("a check that fails is a finding, and keeps no other from looking", async () => {
    const look = () => Promise.reject(Object.assign(new Error("broken"), { code: "EIO" }));
    const whole = { name: "whole", look: async () => [note("seen", null)] };
    const found = await diagnose({ layout: { root } } as Patient, [{ name: "broken", look }, whole]);
    expect(found).toMatchObject([
      { check: "broken", level: "error", data: { code: "E_DISK" } },
      { check: "whole", level: "note" },
    ]);
  });

  it("weighs what was found", () => {
    expect(exitOf([warning("w", "n"), note("n", null)])).toBe(0);
    expect(exitOf([failed("E_CONFIG", "c", "n")])).toBe(10);
    expect(exitOf([failed("E_LOG_CORRUPT", "l", "n"), failed("E_CONFIG", "c", "n")])).toBe(13);
    const many = capped(Array.from({ length: 25 }, () => failed("E_CONFIG", "c", "n")));
    expect(many.at(-1)).toMatchObject({ message: "and 5 more of these", data: { code: "E_CONFIG" } });
    expect(summaryOf(many)).toEqual({ error: 21, warning: 0, note: 0, ok: 0 });
  });
});
