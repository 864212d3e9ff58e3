import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { decodeRegistry } from "../../src/features/gates/registry";
import { foldResults } from "../../src/features/gates/results";
import { decodeIssue } from "../../src/features/issues/model";
import { readOrSet } from "../../src/features/issues/or-set";
import { nodePlatform } from "../../src/platform/node/node";
import { claimEventOf, decodeLine } from "../../src/store/envelope";
import { unseal } from "../../src/store/sealed";
import { ROOT } from "../house/source";
import { keptScratch } from "./kept-scratch";

const FORMATS = readFileSync(join(ROOT, "docs/FORMATS.md"), "utf8");
const { digest } = nodePlatform();

/** Shown here, and held against what is read and written in tests of their own. */
const ELSEWHERE = ["config.toml", "agent.toml", "claim-record", "ledger-state"];

type Json = Readonly<Record<string, unknown>>;

/** Fenced blocks with a name after their language: the name of what they are an example of. */
const EXAMPLES = new Map(
  [...FORMATS.matchAll(/^```(?:json|toml) (\S+)\n([\s\S]*?)^```$/gm)].map(([, name, text]) => [name!, text!]),
);
const example = (name: string) => JSON.parse(EXAMPLES.get(name) ?? "null") as Json;
const compact = (name: string) => JSON.stringify(example(name));

/** The section that an example stands in, up to the next heading. */
function sectionOf(name: string): string {
  const at = FORMATS.search(new RegExp(`^\`\`\`\\w+ ${name.replace(".", "\\.")}$`, "m"));
  const start = FORMATS.lastIndexOf("\n## ", at);
  const end = FORMATS.indexOf("\n## ", at);
  return FORMATS.slice(start, end === -1 ? undefined : end);
}

/** Names of all fields at any depth. */
function fieldsOf(value: unknown, path = ""): string[] {
  if (Array.isArray(value)) return [...new Set(value.flatMap((entry) => fieldsOf(entry, `${path}[]`)))];
  if (typeof value !== "object" || value === null) return [path];
  return Object.entries(value).flatMap(([name, inner]) => fieldsOf(inner, `${path}.${name}`));
}

const run: { repository: string; ticket: Json } = { repository: "", ticket: {} };
const control = (...names: string[]) => join(run.repository, ".git/cotenant", ...names);
const read = (path: string) => JSON.parse(readFileSync(path, "utf8")) as Json;

function cotenant(...args: string[]): string {
  const ended = spawnSync(join(ROOT, "bin/cotenant"), args, {
    cwd: run.repository,
    encoding: "utf8",
    env: { ...process.env, COTENANT_AGENT_ID: "agent:ada" },
  });
  expect(ended.status, `${args.join(" ")}: ${ended.stderr}`).toBe(0);
  return ended.stdout.trim();
}

async function eventually<T>(look: () => T | undefined): Promise<T> {
  for (let tries = 0; tries < 600; tries++) {
    const found = look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("it never came");
}

/** A waiter is the only one who has a ticket, and only while it waits. */
async function catchTicket(): Promise<Json> {
  const waiter: ChildProcess = spawn(
    join(ROOT, "bin/cotenant"),
    ["lock", "acquire", "src/app.ts", "--wait", "--timeout", "60", "--agent-id", "agent:carol"],
    { cwd: run.repository, stdio: "ignore" },
  );
  try {
    return await eventually(() => {
      const [name] = readdirSync(control("queue")).filter((entry) => /^\d{10}\.json$/.test(entry));
      return name === undefined ? undefined : read(control("queue", name));
    });
  } finally {
    waiter.kill("SIGKILL");
  }
}

/** Of a daemon that runs for as long as it takes to read it. */
function runningRecord(): Json {
  cotenant("daemon", "start", "--quiet");
  const folder = join(run.repository, ".git/cotenant/daemon");
  const file = readdirSync(folder).find((name) => name.endsWith(".json"))!;
  const record = JSON.parse(readFileSync(join(folder, file), "utf8")) as Json;
  cotenant("daemon", "stop", "--quiet");
  return record;
}

beforeAll(async () => {
  run.repository = keptScratch("cotenant-formats");
  mkdirSync(join(run.repository, "src/api"), { recursive: true });
  spawnSync("git", ["init", "-q"], { cwd: run.repository });
  cotenant("init", "--hooks", "--agents", "claude", "--quiet");
  const issue = cotenant("issue", "create", "--title", "Log in with a passkey", "--quiet");
  cotenant("claim", "acquire", issue, "--quiet");
  cotenant("claim", "heartbeat", issue, "--quiet");
  cotenant("lock", "acquire", "src/app.ts", "--ttl", "1", "--quiet");
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  cotenant("lock", "acquire", "src/app.ts", "--note", "n", "--agent-id", "agent:bob", "--quiet");
  const gated = cotenant("issue", "create", "--title", "Gated", "--quiet");
  cotenant("gate", "define", "tests", "--command", "true", "--agent-id", "human:ada", "--quiet");
  cotenant("claim", "acquire", gated, "--quiet");
  cotenant("gate", "add", gated, "tests", "--quiet");
  cotenant("gate", "run", gated, "--quiet");
  run.ticket = await catchTicket();
  cotenant("lock", "release", "src/app.ts", "--agent-id", "agent:bob", "--quiet");
}, 120_000);

describe("the examples in FORMATS", () => {
  it("of the log are lines whose sums hold", () => {
    for (const name of ["claims.jsonl", "log.checkpoint"]) {
      const line = decodeLine(digest, compact(name));
      expect(line, name).not.toBeNull();
      if (name === "claims.jsonl") expect(claimEventOf(line!)?.leases).toHaveLength(1);
    }
  });

  it.each(["ended", "applied", "synced", "queue"])("of sealed files have seals that hold: %s", (name) => {
    expect(unseal(digest, new TextEncoder().encode(compact(name)))).not.toBeNull();
  });

  it("of gates are a registry and a result", () => {
    const reading = decodeRegistry(compact("registry.json"));
    expect(reading).toMatchObject({ registry: { problems: [] } });
    expect(foldResults(compact("results"))).toMatchObject({ broken: 0 });
  });

  it("of an issue is one", () => {
    expect(decodeIssue(compact("issue.json"))).toHaveProperty("issue");
  });

  it("of a set are lines of one, with all their fields explained", () => {
    const lines = /^```jsonl\n([\s\S]*?)^```$/m.exec(FORMATS)![1]!;
    expect(readOrSet(lines)).toEqual({ values: [], tags: new Map(), broken: 0 });
    expect(readOrSet(lines.split("\n")[0]!).values).toEqual(["area:login"]);
    const section = /^## labels\.or-set[\s\S]*?^## /m.exec(FORMATS)![0];
    for (const line of lines.trim().split("\n"))
      for (const field of Object.keys(JSON.parse(line) as Json)) expect(section).toContain(`\`${field}\``);
  });

  it("have the fields of a fresh run", () => {
    const log = readFileSync(control("claims.jsonl"), "utf8").trim().split("\n");
    const lines = log.map((line) => JSON.parse(line) as { payload: { ended?: unknown[] } });
    const [issue] = readdirSync(join(run.repository, ".cotenant/issues"));
    const [ended] = readdirSync(control("index/ended"));
    const [results] = readdirSync(join(run.repository, ".cotenant/gates/results"));
    const secrets = readFileSync(control("secrets/agent%3aada/default.json"), "utf8").split("\n");
    cotenant("gc", "--quiet");
    const flat = read(control("claims.index.json"));
    const fresh: Record<string, unknown> = {
      "claims.jsonl": lines.find(({ payload }) => (payload.ended ?? []).length > 0),
      "log.checkpoint": lines[0],
      ended: read(control("index/ended", ended!)),
      applied: read(control("index/applied")),
      synced: read(control("index/synced")),
      queue: run.ticket,
      "claims.lock": read(control("locks/claims.lock")),
      secrets: JSON.parse(secrets[0]!),
      heartbeat: read(control("heartbeat/agent%3aada.json")),
      daemon: runningRecord(),
      "claims.index.json": flat,
      "descriptor.json": read(
        control("snapshots", cotenant("snapshot", "--tag", "t", "--quiet"), "descriptor.json"),
      ),
      "hooks.json": read(control("hooks.json")),
      agents: read(control("agents", readdirSync(control("agents"))[0]!)),
      "cotenant-worktree.json": read(join(run.repository, ".git/cotenant-worktree.json")),
      "issue.json": read(join(run.repository, ".cotenant/issues", issue!, "issue.json")),
      "registry.json": read(join(run.repository, ".cotenant/gates/registry.json")),
      results: read(join(run.repository, ".cotenant/gates/results", results!)),
    };
    expect([...EXAMPLES.keys()].sort()).toEqual([...Object.keys(fresh), ...ELSEWHERE].sort());
    for (const [name, value] of Object.entries(fresh)) {
      expect(fieldsOf(value).sort(), name).toEqual(fieldsOf(example(name)).sort());
    }
  });

  it("have every field explained in their section", () => {
    for (const name of EXAMPLES.keys()) {
      if (name.endsWith(".toml") || name === "heartbeat" || name === "claims.lock") continue;
      // A lease, whole or ended, is explained once, with the log.
      const section = sectionOf(name) + sectionOf("claims.jsonl");
      const outer = example(name);
      const fields = Object.keys((outer["value"] as Json | undefined) ?? outer);
      const missing = fields.filter(
        (field) => !field.endsWith("_clock") && !section.includes(`\`${field}\``),
      );
      expect(missing, name).toEqual([]);
    }
  });

  it("of settings are accepted and take effect", () => {
    writeFileSync(join(run.repository, ".cotenant/config.toml"), EXAMPLES.get("config.toml")!);
    mkdirSync(join(run.repository, "xdg/cotenant"), { recursive: true });
    writeFileSync(join(run.repository, "xdg/cotenant/agent.toml"), EXAMPLES.get("agent.toml")!);
    const { COTENANT_AGENT_ID: _, ...env } = process.env;
    const asAda = (...args: string[]) =>
      spawnSync(join(ROOT, "bin/cotenant"), [...args, "--json"], {
        cwd: run.repository,
        encoding: "utf8",
        env: { ...env, XDG_CONFIG_HOME: join(run.repository, "xdg") },
      }).stdout;
    asAda("trust");
    expect(JSON.parse(asAda("lock", "acquire", "--resource=x"))).toMatchObject({
      data: { lease: { agent_id: "human:ada", ttl_secs: 300 } },
    });
  });
});

describe("the names in FORMATS", () => {
  it("are where the leases are", () => {
    const rows = [...FORMATS.matchAll(/^\| `([a-z]+):([^`]+)` \| `(index\/[^`]+)` \|$/gm)];
    expect(rows.length).toBeGreaterThan(5);
    // One agent may hold all of them: its own leases never exclude each other.
    const targets = rows.map(([, kind, name]) => (kind === "file" ? name! : `--${kind}=${name}`));
    cotenant("lock", "acquire", ...targets, "--quiet");
    expect(rows.map(([, , , path]) => path!).filter((path) => !existsSync(control(path)))).toEqual([]);
  });

  it("are those of the archive, packed and not", () => {
    cotenant("gc", "--compact", "--quiet");
    expect(readdirSync(control("archive"))).toEqual(["claims-000001.jsonl.gz"]);
    expect(FORMATS).toContain("`claims-000001.jsonl.gz`");
  });

  it("are all there is in the control plane", () => {
    const picture = /^\.git\/cotenant\/\n([\s\S]*?)\n\n/m.exec(FORMATS)![1]!;
    const shown = [...picture.matchAll(/^├── ([\w.-]+)|^└── ([\w.-]+)/gm)].map(([, a, b]) => a ?? b);
    expect(readdirSync(control()).filter((name) => !shown.includes(name))).toEqual([]);
  });
});
