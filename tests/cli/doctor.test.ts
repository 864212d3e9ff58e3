import * as fs from "node:fs";
import * as path from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { beforeEach, describe, expect } from "vitest";
import { NodeLocks } from "../../src/platform/node/locks";
import { needTool } from "../house/need-tool";
import { oneIn } from "../support/one-in";
import { PROGRAM, type Ran, run, start, until } from "../support/program";
import { expectJsonRefused, expectNoInnards, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(8);

interface Finding {
  readonly check: string;
  readonly level: "error" | "warning" | "note" | "ok";
  readonly message: string;
  readonly next: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
});

/** The findings of a run with `--json`, whatever its exit status. */
function findingsOf(ran: Ran): Finding[] {
  expect(ran.json.ok, `${ran}`).toBe(true);
  const { findings, summary } = ran.json.data as unknown as {
    findings: Finding[];
    summary: Record<string, number>;
  };
  for (const { level, next, data } of findings) {
    if (level === "error" || level === "warning") expect(next).toMatch(/\w/);
    if (level === "error") expect(data["code"]).toMatch(/^E_[A-Z_]+$/);
  }
  expect(Object.values(summary).reduce((sum, n) => sum + n)).toBe(findings.length);
  return findings;
}

/** Runs doctor and sees that it has not touched anything: as a program with an environment, else without a process. */
async function doctor(env?: Record<string, string | undefined>): Promise<{ ran: Ran; found: Finding[] }> {
  const before = repo.picture();
  const ran = await (env === undefined
    ? repo.askHere("agent:d", "doctor")
    : repo.askWith(env, "agent:d", "doctor"));
  expect(repo.picture()).toEqual(before);
  return { ran, found: findingsOf(ran) };
}

const wrong = (found: readonly Finding[]) =>
  found.filter(({ level }) => level === "error" || level === "warning");
const of = (found: readonly Finding[], check: string) => found.filter((finding) => finding.check === check);

async function use(): Promise<void> {
  await repo.prepare("agent:a", "init");
  await repo.prepare("agent:a", "lock", "acquire", "a.ts", "b.ts");
  await repo.prepare("agent:a", "gc", "--compact");
  await repo.prepare("agent:b", "lock", "acquire", "c.ts", "--ttl", "900");
  await repo.prepare("agent:a", "lock", "release", "a.ts");
}

describe("doctor: nothing is wrong", () => {
  it("in a repository that nobody has prepared, and says how to begin", async () => {
    const { ran, found } = await doctor({});
    expect(ran.status).toBe(0);
    expect(wrong(found)).toEqual([]);
    expect(of(found, "data-plane")[0]).toMatchObject({ level: "note", next: "run: cotenant init" });
    expect(fs.existsSync(repo.control)).toBe(false);
  });

  it("in a repository in use, after rotation and packing", async () => {
    await use();
    const { ran, found } = await doctor({});
    expect(ran.status).toBe(0);
    expect(wrong(found)).toEqual([]);
    expect(of(found, "log")[0]).toMatchObject({ level: "ok", data: { segments: 2 } });
    expect(of(found, "index")[0]).toMatchObject({ level: "ok", data: { leases: 2 } });
    const { stdout, status } = await repo.run("agent:d", "doctor");
    expect(status).toBe(0);
    expect(stdout.trimEnd().split("\n").at(-1)).toBe("everything is fine");
    expect((await repo.runHere("agent:d", "doctor", "--quiet")).stdout).toBe("");
  });

  it("and its last line is true where there is something to do, or something for a person", async () => {
    const last = async (...words: string[]) =>
      (await repo.runHere("agent:d", "doctor", ...words)).stdout.trimEnd().split("\n").at(-1);
    expect(await last()).toBe("no errors, 1 note");
    await use();
    const id = await repo.issue();
    await repo.prepare("agent:a", "claim", "acquire", id);
    await repo.prepare("human:h", "claim", "force-evict", id, "--reason", "it hangs");
    expect(await last()).toBe("no errors, 1 note; 'cotenant status' lists 1 thing for a person");
    expect(await last("--quiet")).toBe("");
    await repo.prepare("agent:a", "claim", "acquire", id);
    expect(await last()).toBe("everything is fine");
    // Also beside errors; and where 'status' cannot be asked, nothing is said of it.
    await repo.prepare("human:h", "claim", "force-evict", id, "--reason", "it hangs");
    repo.write(".cotenant/config.toml", '[worktree]\nenforce_leases = "off"\n');
    expect(await last()).toBe("0 errors, 1 warning; 'cotenant status' lists 2 things for a person");
    repo.write(".cotenant/config.toml", "[broken");
    expect(await last()).toMatch(/^\d errors?, \d warnings?$/);
  });

  it("for somebody who gave no name", async () => {
    await use();
    expect(findingsOf(await repo.ask("", "doctor")).filter(({ level }) => level === "error")).toEqual([]);
  });

  it("while others work", async () => {
    await use();
    const others = ["e", "f", "g"].map(async (name) => {
      for (let i = 0; i < 5; i++) {
        await repo.ask(`agent:${name}`, "lock", "acquire", `${name}.ts`);
        await repo.ask(`agent:${name}`, "lock", "release", `${name}.ts`);
      }
    });
    for (let i = 0; i < 5; i++) expect(wrong(findingsOf(await repo.ask("agent:d", "doctor")))).toEqual([]);
    await Promise.all(others);
  });

  it("outside a repository there is nothing to look at", async () => {
    for (const command of ["doctor", "info", "validate leases", "validate all", "deinit"]) {
      const outside = TestRepo.of(scratch());
      expectRefused(await outside.run("agent:a", ...command.split(" ")), 10, "E_NOT_A_REPO");
      expectJsonRefused(await outside.askHere("agent:a", ...command.split(" ")), 10, "E_NOT_A_REPO");
    }
  });
});

describe("doctor: the log", () => {
  const lines = () => repo.logText().split("\n").slice(0, -1);
  const writeLines = (all: readonly string[]) => fs.writeFileSync(repo.logFile, `${all.join("\n")}\n`);

  it.each<[string, (all: string[]) => string[]]>([
    ["a letter is changed", (all) => all.with(1, all[1]!.replace("agent:", "agent;"))],
    ["a line is missing", (all) => all.toSpliced(1, 1)],
    ["two lines changed places", (all) => [all[0]!, all[2]!, all[1]!]],
    ["its beginning is missing", (all) => all.slice(1)],
  ])("%s: exit 13, and what to run", async (_, harm) => {
    await use();
    writeLines(harm(lines()));
    const { ran, found } = await doctor();
    expect(ran.status).toBe(13);
    const [finding] = of(found, "log");
    expect(finding).toMatchObject({ level: "error", data: { code: "E_LOG_CORRUPT" } });
    expect(finding!.next).toContain("cotenant recover");
    expect((await repo.run("agent:d", "doctor")).status).toBe(13);
    expect((await repo.askHere("agent:d", "validate", "leases")).status).toBe(13);
    expect((await repo.askHere("agent:a", "recover")).status).toBe(0);
    const after = await doctor();
    expect(after.ran.status, `${after.ran}`).toBe(0);
    expect(
      of(after.found, "leftovers")
        .map(({ message }) => message)
        .join(),
    ).toContain("damaged files");
  });

  it("is gone", async () => {
    await use();
    fs.rmSync(repo.logFile);
    const { ran, found } = await doctor();
    expect(ran.status).toBe(13);
    expect(of(found, "log")[0]).toMatchObject({ level: "error", data: { code: "E_LOG_CORRUPT" } });
  });

  it("ends in a torn line: nobody was promised that, and nothing is wrong", async () => {
    await use();
    fs.appendFileSync(repo.logFile, '{"schema_version":1,"sequence":99,"ev');
    const { ran, found } = await doctor();
    expect(ran.status).toBe(0);
    expect(of(found, "log").map(({ level }) => level)).toEqual(["note", "ok"]);
  });

  const archive = () => path.join(repo.control, "archive/claims-000001.jsonl.gz");

  it("has an archived segment whose line was altered, though its neighbours fit", async () => {
    await use();
    const text = gunzipSync(fs.readFileSync(archive())).toString();
    fs.writeFileSync(archive(), gzipSync(text.replace("b.ts", "x.ts")));
    const { ran, found } = await doctor();
    expect(ran.status).toBe(13);
    expect(of(found, "log")[0]!.message).toContain("claims-000001.jsonl.gz, line 2");
  });

  it("has an archived segment that lost its end, or cannot be unpacked", async () => {
    await use();
    const whole = fs.readFileSync(archive());
    const text = gunzipSync(whole).toString();
    fs.writeFileSync(archive(), gzipSync(text.slice(0, text.lastIndexOf("\n", text.length - 2) + 1)));
    expect((await doctor()).found.find(({ check }) => check === "log")).toMatchObject({ level: "error" });
    fs.writeFileSync(archive(), whole.subarray(0, whole.length / 2));
    expect((await doctor()).ran.status).toBe(13);
    fs.writeFileSync(archive(), whole);
    expect((await doctor()).ran.status).toBe(0);
  });

  it("misses an archived segment: worth a note, for nobody must keep history", async () => {
    await use();
    fs.rmSync(archive());
    const { ran, found } = await doctor();
    expect(ran.status).toBe(0);
    expect(of(found, "log")[0]).toMatchObject({ level: "note", data: { missing: [1] } });
  });

  it("was written by a newer cotenant", async () => {
    await use();
    fs.appendFileSync(repo.logFile, '{"schema_version":99}\n');
    const { ran, found } = await doctor();
    expect(ran.status).toBe(10);
    expect(of(found, "log")[0]).toMatchObject({ level: "error", data: { code: "E_SCHEMA_NEWER" } });
  });
});

describe("doctor: the index", () => {
  const meta = (file: string) => path.join(repo.control, "index/file", file, "meta.json");

  it("is deleted, or of no use: the next writer makes it, and nothing is wrong", async () => {
    await use();
    fs.writeFileSync(path.join(repo.control, "index/applied"), "nonsense");
    const damaged = await doctor();
    expect(of(damaged.found, "index")[0]).toMatchObject({ level: "note", data: { state: "unfinished" } });
    fs.rmSync(path.join(repo.control, "index"), { recursive: true });
    const { ran, found } = await doctor();
    expect(ran.status).toBe(0);
    expect(of(found, "index")[0]).toMatchObject({ level: "note", data: { state: "absent" } });
    await repo.prepare("agent:e", "lock", "acquire", "e.ts");
    expect(of((await doctor()).found, "index")[0]!.level).toBe("ok");
  });

  it.each<[string, () => void]>([
    ["lacks a lease", () => fs.rmSync(meta("b.ts"))],
    ["has a lease that was released", () => fs.cpSync(meta("b.ts"), meta("a.ts"))],
    ["has a lease in the wrong place", () => fs.renameSync(meta("b.ts"), meta("c.ts"))],
    ["has a lease that is broken", () => fs.writeFileSync(meta("b.ts"), "{}")],
    [
      "has lost its census",
      () => {
        const index = path.join(repo.control, "index");
        for (const name of fs.readdirSync(index))
          if (name.startsWith("census-")) fs.rmSync(path.join(index, name));
      },
    ],
  ])("%s", async (_, harm) => {
    await use();
    fs.mkdirSync(path.dirname(meta("a.ts")), { recursive: true });
    harm();
    const { ran, found } = await doctor({});
    const [finding] = of(found, "index");
    expect(finding, `${ran}`).toMatchObject({ level: "error", data: { state: "wrong" } });
    expect(ran.status).toBe(13);
    // The advice works.
    fs.renameSync(path.join(repo.control, "index"), path.join(scratch(), "index"));
    await repo.prepare("agent:e", "lock", "acquire", "e.ts");
    expect(of((await doctor()).found, "index")[0]!.level).toBe("ok");
  });
});

describe("doctor: surroundings", () => {
  const withPath = async (folder: string) => {
    const env = { PATH: folder, COTENANT_AGENT_ID: "agent:d" };
    return run([process.execPath, PROGRAM, "doctor", "--json"], { cwd: repo.root, env });
  };

  it("Git is missing, or too old", async () => {
    const old = scratch();
    fs.writeFileSync(path.join(old, "git"), "#!/bin/sh\necho git version 2.30.2\n", { mode: 0o755 });
    for (const [folder, words] of [
      ["/nonexistent", "missing"],
      [old, "2.30.2 is too old"],
    ] as const) {
      const ran = await withPath(folder);
      expect(ran.status).toBe(10);
      const [finding] = of(findingsOf(ran), "git");
      expect(finding).toMatchObject({ level: "error", data: { code: "E_GIT_TOO_OLD" } });
      expect(finding!.message).toContain(words);
      expect(finding!.next).toContain("2.38");
    }
  });

  it("the configuration is broken, in several places, and everything else is still looked at", async () => {
    await use();
    repo.write(
      ".cotenant/config.toml",
      '[coordination]\ndefault_tll_secs = 5\n[locks]\nmax_age_secs = "old"\n',
    );
    const { ran, found } = await doctor({ COTENANT_GUARD_RETRY_SEC: "1" });
    expect(ran.status).toBe(10);
    const messages = of(found, "config").map(({ message }) => message);
    expect(messages).toHaveLength(3);
    expect(messages.join("\n")).toMatch(/config\.toml:2: .*\n?.*/);
    expect(
      of(found, "config")
        .map(({ next }) => next)
        .join(),
    ).toContain("default_ttl_secs");
    expect(of(found, "log")[0]!.level).toBe("ok");
    const validated = await repo.ask("agent:d", "validate", "config");
    expect(validated.status).toBe(10);
    expect(findingsOf(validated)).toHaveLength(2);
    expect((await repo.askHere("agent:d", "validate", "all")).status).toBe(10);
    expect((await repo.askHere("agent:d", "validate", "leases")).status).toBe(0);
  });

  it("the configuration is not even TOML, or not text, or from the future", async () => {
    await use();
    for (const content of [
      "[coordination\n",
      Buffer.from([0xff, 0xfe, 0x00]),
      "[quantum]\nentangle = true\n",
    ]) {
      fs.writeFileSync(path.join(repo.root, ".cotenant/config.toml"), content);
      const { ran, found } = await doctor();
      expect(ran.status).toBe(10);
      expect(of(found, "config")[0]).toMatchObject({ level: "error", data: { code: "E_CONFIG" } });
      for (const command of ["info", "validate all", "deinit --dry-run"])
        expectNoInnards(await repo.runHere("agent:a", ...command.split(" ")));
    }
  });

  it("the configuration loosens what nobody trusts", async () => {
    await use();
    repo.write(".cotenant/config.toml", '[policy]\nevict = ["agent:*"]\n');
    const { ran, found } = await doctor();
    expect(ran.status).toBe(0);
    const [finding] = of(found, "config");
    expect(finding).toMatchObject({ level: "warning", data: { key: "policy.evict" } });
    expect(finding!.next).toContain("cotenant trust --list");
    expect((await repo.ask("agent:d", "validate", "config")).status).toBe(0);
  });

  it("agent.toml is broken", async () => {
    const home = scratch();
    fs.mkdirSync(path.join(home, ".config/cotenant"), { recursive: true });
    fs.writeFileSync(path.join(home, ".config/cotenant/agent.toml"), "[agent]\nid = 'no colon'\n");
    const { ran, found } = await doctor({ HOME: home });
    expect(ran.status).toBe(10);
    expect(of(found, "config")[0]!.message).toContain("agent.toml");
  });

  it("the wall clock is behind the log", async () => {
    await use();
    const ahead = new Date(Date.now() + 3 * 86_400_000).toISOString();
    const all = repo.logText().split("\n").slice(0, -1);
    const { nodePlatform } = await import("../../src/platform/node/node");
    const { decodeLine, encodeLine } = await import("../../src/store/envelope");
    const { digest } = nodePlatform();
    const last = decodeLine(digest, all.at(-1)!)!;
    const place = { ...last, wallMs: Date.parse(ahead) };
    fs.writeFileSync(repo.logFile, `${all.slice(0, -1).join("\n")}\n${encodeLine(digest, last, place).text}`);
    const { ran, found } = await doctor();
    expect(of(found, "clock")[0]).toMatchObject({ level: "warning", data: { newest_line_at: ahead } });
    expect(ran.status).toBe(0);
  });
});

describe("doctor: permissions", () => {
  it("secrets that others can read are an error, with the command that mends it", async () => {
    await use();
    const secrets = path.join(repo.control, "secrets");
    const [agent] = fs.readdirSync(secrets);
    const file = path.join(secrets, agent!, fs.readdirSync(path.join(secrets, agent!))[0]!);
    fs.chmodSync(file, 0o644);
    const { ran, found } = await doctor({});
    expect(ran.status).toBe(10);
    const [finding] = of(found, "permissions");
    expect(finding).toMatchObject({
      level: "error",
      data: { code: "E_PERMISSION", path: file, mode: "644" },
    });
    const command = finding!.next!.replace(/^run: /, "");
    expect((await run(["/bin/sh", "-c", command], { cwd: "/" })).status).toBe(0);
    expect(wrong((await doctor()).found)).toEqual([]);
  });

  it("a control plane that is more open than it should be is a warning", async () => {
    await use();
    fs.chmodSync(repo.control, 0o755);
    fs.chmodSync(repo.logFile, 0o640);
    const { ran, found } = await doctor();
    expect(ran.status).toBe(0);
    expect(of(found, "permissions").map(({ data }) => data["mode"])).toEqual(["755", "640"]);
  });

  it("group modes are right where the repository is shared", async () => {
    repo.git("config", "core.sharedRepository", "group");
    await use();
    expect(wrong((await doctor()).found)).toEqual([]);
  });

  it("what 'init --allow-network-fs' leaves is private, too", async () => {
    await repo.prepare("agent:a", "init", "--allow-network-fs");
    expect(of((await doctor()).found, "permissions")[0]!.level).toBe("ok");
  });

  /** Only root can become somebody else, and mount. */
  describe.runIf(process.getuid?.() === 0)("of others", () => {
    const NOBODY = 65534;

    /** May begin with `NAME=value`. */
    async function asNobody(...args: string[]): Promise<Ran> {
      needTool("setpriv");
      const room = scratch();
      fs.chmodSync(room, 0o755);
      const root = path.dirname(path.dirname(PROGRAM));
      for (const part of ["bin", "dist"])
        fs.cpSync(path.join(root, part), path.join(room, "program", part), { recursive: true });
      fs.writeFileSync(path.join(room, ".gitconfig"), "[safe]\n\tdirectory = *\n");
      const env = { HOME: room, GIT_CONFIG_GLOBAL: undefined, COTENANT_AGENT_ID: "agent:d" };
      const [name, value] = args[0]?.includes("=") ? args.shift()!.split("=") : [];
      if (name !== undefined) Object.assign(env, { [name]: value });
      const become = [
        "setpriv",
        `--reuid=${NOBODY}`,
        `--regid=${NOBODY}`,
        "--clear-groups",
        process.execPath,
      ];
      return run([...become, path.join(room, "program/bin/cotenant"), ...args], { cwd: repo.root, env });
    }

    it("a private control plane of somebody else: what can be seen is told, and nothing breaks", async () => {
      await use();
      fs.chmodSync(path.dirname(repo.root), 0o755);
      for (const command of ["doctor", "validate leases", "info"]) {
        const ran = await asNobody(...command.split(" "));
        expectNoInnards(ran);
        expect(ran.status, `${ran}`).toBe(command === "info" ? 0 : 10);
      }
      const found = findingsOf(await asNobody("doctor", "--json"));
      expect(of(found, "log")[0]).toMatchObject({ level: "error", data: { code: "E_PERMISSION" } });
      expect(of(found, "git")[0]!.level).toBe("ok");
      const refused = await asNobody("deinit");
      expectRefused(refused, 10, "E_PERMISSION");
      expect(fs.existsSync(repo.logFile)).toBe(true);
    });

    it("a home that cannot be entered: its configuration does not count, and that is said", async () => {
      for (const entry of [".", ...fs.readdirSync(repo.root, { recursive: true, encoding: "utf8" })])
        fs.lchownSync(path.join(repo.root, entry), NOBODY, NOBODY);
      fs.chmodSync(path.dirname(repo.root), 0o755);
      const closed = path.join(scratch(), "home");
      for (const command of ["init", "doctor", "info", "validate all", "deinit --dry-run", "deinit"]) {
        const ran = await asNobody(`HOME=${closed}`, ...command.split(" "));
        expect(ran.status, `${ran}`).toBe(0);
        expectNoInnards(ran);
        if (command === "doctor")
          expect(ran.stdout).toContain(`${closed}/.config/cotenant/config.toml cannot be reached`);
      }
    });

    it("a disk that cannot be written", async () => {
      await use();
      await repo.prepare("agent:b", "lock", "release", "c.ts");
      needTool("setpriv");
      needTool("mount");
      const script =
        'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && cd "$1" && shift && exec "$@"';
      const readOnly = (...args: string[]) =>
        run(["unshare", "--mount", "/bin/sh", "-c", script, "sh", repo.root, PROGRAM, ...args], { cwd: "/" });
      const ran = await readOnly("doctor", "--json");
      expect(ran.status, `${ran}`).toBe(10);
      const [finding] = of(findingsOf(ran), "permissions");
      expect(finding).toMatchObject({ level: "error", data: { code: "E_DISK" } });
      expect(finding!.message).toContain("read-only");
      expect(of(findingsOf(ran), "log")[0]!.level).toBe("ok");
      expect((await readOnly("info")).status).toBe(0);
      expectRefused(await readOnly("deinit", "--agent-id", "agent:a"), 10, "E_DISK");
    });
  });
});

describe("doctor: what is left behind", () => {
  const old = new Date(Date.now() - 3_600_000);
  const leave = (file: string, content = "") => {
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, content, { mode: 0o600 });
    fs.utimesSync(file, old, old);
  };

  it("unfinished writes, torn ends, segments not packed, an interrupted deinit", async () => {
    await use();
    leave(path.join(repo.control, "claims.jsonl.next"));
    leave(path.join(repo.control, "queue/0000000001.json.new"));
    leave(path.join(repo.root, ".cotenant/config.toml.new-0123456789ab"));
    leave(path.join(repo.root, ".git/cotenant-worktree.json.damaged-1"));
    leave(path.join(repo.control, "archive/torn-2026-01-01-5.jsonl"));
    leave(`${repo.control}.gone-0123456789ab/claims.jsonl`);
    fs.renameSync(
      path.join(repo.control, "archive/claims-000001.jsonl.gz"),
      path.join(repo.control, "archive/claims-000001.jsonl"),
    );
    fs.writeFileSync(
      path.join(repo.control, "archive/claims-000001.jsonl"),
      gunzipSync(fs.readFileSync(path.join(repo.control, "archive/claims-000001.jsonl"))),
    );
    const { ran, found } = await doctor();
    expect(ran.status).toBe(0);
    const paths = of(found, "leftovers").map(({ level, data }) => {
      expect(level).toBe("note");
      return (data["paths"] as string[]).map((file) => path.basename(file)).sort();
    });
    expect(paths).toEqual([
      ["0000000001.json.new", "claims.jsonl.next", "config.toml.new-0123456789ab"],
      ["cotenant-worktree.json.damaged-1"],
      ["torn-2026-01-01-5.jsonl"],
      ["claims-000001.jsonl"],
      ["cotenant.gone-0123456789ab"],
    ]);
  });

  it("metadata of the mutex that is older than locks.max_age_secs is reported, and the file stays", async () => {
    await use();
    // By a process that has ended.
    await repo.start("agent:e", ["lock", "acquire", "e.ts"]).done;
    const lock = path.join(repo.control, "locks/claims.lock");
    const metadata = JSON.parse(fs.readFileSync(lock, "utf8"));
    expect(of((await doctor()).found, "locks")[0]).toMatchObject({ level: "ok", data: { running: false } });
    metadata.created_at = new Date(Date.now() - 2 * 3_600_000).toISOString();
    fs.writeFileSync(lock, JSON.stringify(metadata));
    const { found } = await doctor();
    expect(of(found, "locks")[0]).toMatchObject({ level: "note", data: { running: false } });
    const lenient = await doctor({ COTENANT_LOCKS_MAX_AGE_SECS: "86400" });
    expect(of(lenient.found, "locks")[0]!.level).toBe("ok");
  });

  it("a mutex that stays taken is reported while it is, without waiting for it", async () => {
    await use();
    const lock = path.join(repo.control, "locks/claims.lock");
    const metadata = JSON.parse(fs.readFileSync(lock, "utf8"));
    const created_at = new Date(Date.now() - 2 * 3_600_000).toISOString();
    fs.writeFileSync(lock, JSON.stringify({ ...metadata, pid: process.pid, created_at }));
    const fd = fs.openSync(lock, "r+");
    try {
      expect(new NodeLocks().tryLock(fd)).toBe(true);
      const { ran, found } = await doctor();
      expect(ran.status).toBe(0);
      const data = { held: true, running: true, pid: process.pid };
      expect(of(found, "locks")[0]).toMatchObject({ level: "warning", data });
    } finally {
      fs.closeSync(fd);
    }
    expect(of((await doctor()).found, "locks")[0]!.data["held"]).toBe(false);
  });

  it("a ticket of a waiter that was killed, and one that still waits", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a.ts");
    const wait = ["lock", "acquire", "a.ts", "--wait", "--timeout", "100"];
    const [killed, waits] = [repo.start("agent:b", wait), repo.start("agent:c", wait)];
    const queue = path.join(repo.control, "queue");
    await until(
      "both wait",
      () => fs.readdirSync(queue).filter((name) => name.endsWith(".json")).length === 2,
    );
    killed.kill("SIGKILL");
    await killed.done;
    const found = findingsOf(await repo.ask("agent:d", "doctor"));
    expect(of(found, "queue").map(({ level, data }) => [level, data])).toEqual([
      ["note", { tickets: [expect.any(Number)] }],
      ["ok", { waiting: 1 }],
    ]);
    waits.kill("SIGKILL");
  });

  it("secrets of leases that have ended are counted, and never shown", async () => {
    const made = await repo.ask("agent:a", "lock", "acquire", "a.ts", "--print-secret");
    const { secret } = made.data;
    await repo.prepare("agent:a", "lock", "release", "a.ts");
    const folder = path.join(repo.control, "secrets");
    const file = fs
      .readdirSync(folder, { recursive: true, encoding: "utf8" })
      .find((name) => name.endsWith(".json"))!;
    const whole = path.join(folder, file);
    const text = fs.readFileSync(whole, "utf8");
    expect(text).toContain(secret);
    fs.writeFileSync(whole, text.replace(/"made_at":"[^"]+"/g, `"made_at":"${new Date(0).toISOString()}"`));
    const { ran, found } = await doctor();
    expect(of(found, "secrets")[0]).toMatchObject({ level: "note", data: { secrets: 1, useless: 1 } });
    expect(ran.stdout).not.toContain(secret);
    await repo.prepare("agent:a", "gc");
    expect(of((await doctor()).found, "secrets")[0]!.level).toBe("ok");
  });
});

describe("doctor: who and where", () => {
  it("an identity that was copied, is damaged, or is on record twice: worktree init cures each", async () => {
    await use();
    const other = repo.addWorktree("other");
    const [from, to] = [repo, other].map((worktree) =>
      path.join(worktree.git("rev-parse", "--absolute-git-dir").trim(), "cotenant-worktree.json"),
    );
    fs.copyFileSync(from!, to!);
    const copied = of(findingsOf(await other.ask("agent:d", "doctor")), "worktree")[0];
    expect(copied).toMatchObject({ level: "warning", data: { standing: "copied" } });
    expect(copied!.next).toContain("cotenant worktree init");
    fs.writeFileSync(to!, "{");
    expect(of(findingsOf(await other.askHere("agent:d", "doctor")), "worktree")[0]).toMatchObject({
      level: "warning",
      data: { standing: "damaged" },
    });
    await other.prepare("agent:d", "worktree", "init");
    expect(of(findingsOf(await other.askHere("agent:d", "doctor")), "worktree")[0]!.level).toBe("ok");
    fs.writeFileSync(
      to!,
      JSON.stringify({ ...JSON.parse(fs.readFileSync(from!, "utf8")), root: other.root }),
    );
    const twins = of(findingsOf(await other.askHere("agent:d", "doctor")), "worktree");
    expect(twins.map(({ level }) => level)).toEqual(["warning", "ok"]);
    expect(twins[0]!.next).toContain("cotenant worktree init");
    await other.prepare("agent:d", "worktree", "init");
    expect(of(findingsOf(await other.askHere("agent:d", "doctor")), "worktree")).toHaveLength(1);
  });

  it("a data plane without its lines, and one that is no directory", async () => {
    await use();
    fs.writeFileSync(path.join(repo.root, ".cotenant/.gitignore"), "mine\n");
    fs.rmSync(path.join(repo.root, ".cotenant/.gitattributes"));
    const { found } = await doctor();
    expect(of(found, "data-plane").map(({ level }) => level)).toEqual(["warning", "warning"]);
    await repo.prepare("agent:a", "init");
    expect(of((await doctor()).found, "data-plane")[0]!.level).toBe("ok");
    fs.rmSync(path.join(repo.root, ".cotenant"), { recursive: true });
    fs.symlinkSync(scratch(), path.join(repo.root, ".cotenant"));
    const linked = findingsOf(await repo.ask("agent:d", "doctor"));
    expect(of(linked, "data-plane")[0]).toMatchObject({ level: "error", data: { code: "E_PATH_ESCAPE" } });
  });

  it("issues that a merge has left unreadable", async () => {
    await repo.prepare("agent:a", "init");
    const good = await repo.issue();
    const bad = await repo.issue();
    const file = path.join(repo.root, `.cotenant/issues/${bad}/issue.json`);
    const text = fs.readFileSync(file, "utf8");
    fs.writeFileSync(file, `<<<<<<< HEAD\n${text}=======\n${text}>>>>>>> other\n`);
    fs.mkdirSync(path.join(repo.root, ".cotenant/issues/notes"));
    const { ran, found } = await doctor();
    expect(ran.status).toBe(0);
    const issues = of(found, "issues");
    expect(issues.map(({ level }) => level)).toEqual(["warning", "note"]);
    expect(issues[0]!.message).toMatch(new RegExp(`${bad}.*merge conflict`));
    expect(JSON.stringify(issues)).not.toContain(good);
  });

  it("leases that lapsed, and indefinite ones that nobody has heard of", async () => {
    const issue = await repo.issue();
    await repo.prepare("agent:a", "lock", "acquire", "a.ts", "--ttl", "1");
    await repo.prepare("agent:a", "claim", "acquire", issue, "--ttl", "0", "--reason", "long work");
    const env = { COTENANT_COORDINATION_STALE_THRESHOLD_SECS: "1" };
    await until("both are old", async () => {
      const found = findingsOf(await repo.askWith(env, "agent:d", "doctor"));
      const levels = of(found, "leases").map(({ level }) => level);
      return levels.includes("warning") && levels.includes("note");
    });
    const { ran, found } = await doctor(env);
    expect(ran.status).toBe(0);
    expect(of(found, "leases")[0]).toMatchObject({ level: "warning", data: { agent_id: "agent:a" } });
    const validated = await repo.askWith(env, "agent:d", "validate", "leases");
    expect(validated.status).toBe(1);
    expect(validated.json.data!["valid"]).toBe(false);
    expect((await repo.ask("agent:d", "validate", "leases")).data["valid"]).toBe(true);
  });
});

describe("doctor, validate and info for people", () => {
  it("validate is reached as the seeds have it, and says what it can check", async () => {
    await use();
    for (const args of [
      ["leases"],
      ["--leases"],
      ["config"],
      ["--config"],
      ["all"],
      ["--all"],
      ["--leases", "--config"],
    ])
      expect((await repo.askHere("agent:d", "validate", ...args)).data["valid"]).toBe(true);
    expect((await repo.runHere("agent:d", "validate", "--json", "--leases")).json.data!["valid"]).toBe(true);
    expect((await repo.runHere("agent:d", "validate")).status).toBe(64);
    expectRefused(await repo.runHere("agent:d", "validate", "lease"), 64, "E_USAGE");
    expect((await repo.run("agent:d", "validate", "all")).stdout).toMatch(/\nvalid\n$/);
  });

  it("info shows where everything is and who is asking", async () => {
    await use();
    const { data } = await repo.ask("agent:a", "info");
    expect(data).toMatchObject({
      control_directory: repo.control,
      data_directory: path.join(repo.root, ".cotenant"),
      agent: {
        agent_id: "agent:a",
        agent_from: "environment",
        session_id: "default",
        session_from: "default",
      },
      worktree: { root: repo.root, is_main: true, standing: "stored" },
      store: { leases: 2, waiters: 0, segments: 2, damaged: false, sequence: repo.log().at(-1)!.sequence },
      versions: { node: process.versions.node, schema: 1, git: expect.stringMatching(/^2\./) },
      file_system: { network: false },
      problems: [],
    });
    const { stdout } = await repo.runHere("agent:a", "info");
    expect(stdout).toContain(`control     ${repo.control}\n`);
    expect(stdout).toContain("agent       agent:a (from environment)\n");
  });

  it("info needs nobody's name and no store, and names the harness", async () => {
    const before = repo.picture();
    const ran = await repo.askWith({ CODEX_CI: "1" }, "", "info");
    expect(ran.data).toMatchObject({ agent: null, harness: "codex", store: null });
    expect(ran.data["problems"]).toHaveLength(1);
    expect(repo.picture()).toEqual(before);
  });

  it.each([
    ["a terminal of 20 columns", "stty cols 20 2>/dev/null; "],
    ["no colour", "NO_COLOR=1 "],
    ["another locale", "LC_ALL=C LANG=C "],
  ])("%s", async (name, before) => {
    needTool("script");
    await use();
    repo.write(".cotenant/config.toml", "[coordination]\ndefault_tll_secs = 5\n");
    const env = { COTENANT_AGENT_ID: "agent:d", TERM: "xterm", PROGRAM };
    for (const command of ["doctor", "info", "validate all", "deinit --dry-run"]) {
      const inside = `${before}"$PROGRAM" ${command}`;
      const ran = await start(["script", "-qec", inside, "/dev/null"], { cwd: repo.root, env }).done;
      expectNoInnards(ran);
      expect(ran.stdout).not.toBe("");
      expect(ran.stdout.includes("\x1b["), ran.stdout).toBe(
        command !== "info" && command !== "deinit --dry-run" && name !== "no colour",
      );
      if (name !== "a terminal of 20 columns" || command !== "doctor") continue;
      // Nothing is cut: only a word that does not fit is longer.
      const long = ran.stdout
        .split(/\r?\n/)
        .map((line) => line.replace(/\x1b\[\d+m/g, ""))
        .filter((line) => line.length > 20);
      expect(long.filter((line) => line.trim().includes(" "))).toEqual([]);
    }
  });
});
