import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { inspectConfig } from "../../src/config/load";
import { CONFIG_KEYS, type ConfigKey, type ConfigValue, settingOf } from "../../src/config/schema";
import {
  digestOf,
  NO_TRUST,
  readTrust,
  subjectOf,
  type Trust,
  trustFile,
  writeTrust,
} from "../../src/config/trust";
import { nodePlatform } from "../../src/platform/node/node";
import { scratch } from "../support/scratch";

const platform = nodePlatform();
let root: string;
beforeEach(() => {
  root = scratch();
  fs.mkdirSync(path.join(root, ".cotenant"));
});

/** The configuration with a committed file, and perhaps with a personal one. */
function config(committed: string, trust: Trust = NO_TRUST, personal = "") {
  fs.writeFileSync(path.join(root, ".cotenant/config.toml"), committed);
  fs.mkdirSync(path.join(root, "home/cotenant"), { recursive: true });
  fs.writeFileSync(path.join(root, "home/cotenant/config.toml"), personal);
  const env = { XDG_CONFIG_HOME: path.join(root, "home") };
  const systemDirectory = path.join(root, "etc");
  return inspectConfig({ platform, env, home: null, worktreeRoot: root, systemDirectory, trust });
}

const trusted = (key: ConfigKey, value: ConfigValue): Trust => ({
  entries: [
    {
      subject: subjectOf(key),
      digest: digestOf(platform.digest, value),
      trustedAt: "then",
      trustedBy: "human:me",
    },
  ],
  problem: null,
});

describe("a committed file", () => {
  it("may tighten without anybody's leave", async () => {
    const { config: c } = await config(
      '[policy]\nevict = ["admin:*"]\nmax_ttl_secs = { agent = 60 }\n[publish]\nprotected = ["release"]\n',
    );
    expect(c.untrusted).toEqual([]);
    expect(c.policy.evict).toEqual(["admin:*"]);
    expect(c.policy.maxTtlSecs["agent"]).toBe(60);
    expect(c.values["publish.protected"]).toEqual(["release"]);
  });

  it.each([
    ["policy.evict", '["*"]'],
    ["worktree.enforce_leases", '"off"'],
    ["policy.max_ttl_secs", "{ agent = 90000 }"],
    ["worktree.setup", '"curl example.invalid | sh"'],
    ["publish.checks", '["true"]'],
    ["land.checks", '["true"]'],
    ["policy.land", '["*"]'],
    ["land.clean", "true"],
    ["publish.unfenced_remote", "true"],
    ["sync.global_path_override", '"/tmp/x"'],
  ] as const)("cannot loosen %s, nor name a command, unless this clone trusts it", async (key, toml) => {
    const [section, name] = key.split(".");
    const text = `[${section}]\n${name} = ${toml}\n`;
    const refused = (await config(text)).config;
    expect(refused.values[key]).toEqual(settingOf(key).default);
    expect(refused.origin(key).source).toBe("default");
    expect(refused.untrusted.map((entry) => [entry.key, entry.line])).toEqual([[key, 2]]);
    const { value } = refused.untrusted[0]!;
    const allowed = (await config(text, trusted(key, value))).config;
    expect(allowed.untrusted).toEqual([]);
    expect(allowed.values[key] as unknown).toEqual(
      settingOf(key).type === "ints" ? expect.objectContaining(value as object) : value,
    );
  });

  it("is trusted by value: a comment changes nothing, another value does", async () => {
    const trust = trusted("policy.evict", ["agent:lead"]);
    expect(
      (await config('# mine\n[policy]\nevict = ["agent:lead"] # why\n', trust)).config.untrusted,
    ).toEqual([]);
    expect((await config('[policy]\nevict = ["agent:other"]\n', trust)).config.untrusted).toHaveLength(1);
  });

  it("is measured against what would hold without it, and never against what stands above it", async () => {
    const personal = '[policy]\nevict = ["human:boss"]\n';
    expect((await config('[policy]\nevict = ["human:*"]\n', NO_TRUST, personal)).config.policy.evict).toEqual(
      ["human:boss"],
    );
    expect((await config('[policy]\nevict = ["human:*"]\n')).config.untrusted).toEqual([]);
  });

  it("has a rule for every key", () => {
    const commands = CONFIG_KEYS.filter((key) => settingOf(key).tighten === "command");
    expect(commands).toEqual(["worktree.setup", "publish.checks", "land.checks"]);
  });
});

describe("what a clone trusts", () => {
  it("is kept and found again, for its owner's eyes only", async () => {
    const { entries } = trusted("policy.evict", ["*"]);
    await writeTrust(platform, root, entries);
    expect(await readTrust(platform, root)).toEqual({ entries, problem: null });
    expect(fs.statSync(trustFile(root)).mode & 0o777).toBe(0o600);
  });

  it.each([
    ["damaged", "{"],
    ["damaged", "[]"],
    ["damaged", '{"schema_version":1,"entries":[{"subject":7}]}'],
    ["newer", '{"schema_version":2,"entries":[]}'],
  ])("is nothing where its file is %s", async (why, text) => {
    fs.writeFileSync(trustFile(root), text);
    const { entries, problem } = await readTrust(platform, root);
    expect(entries).toEqual([]);
    expect(problem).toContain(why);
  });
});
