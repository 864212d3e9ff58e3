import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { type Config, inspectConfig } from "../../src/config/load";
import {
  CONFIG_KEYS,
  type ConfigKey,
  type ConfigValue,
  settingOf,
  variableOf,
} from "../../src/config/schema";
import { digestOf, NO_TRUST, subjectOf, type Trust } from "../../src/config/trust";
import { tomlOf } from "../../src/config/values";
import { nodePlatform } from "../../src/platform/node/node";
import { scratch } from "../support/scratch";

const platform = nodePlatform();
let root: string;
beforeEach(() => {
  root = scratch();
  fs.mkdirSync(path.join(root, ".cotenant"));
  fs.mkdirSync(path.join(root, "home/cotenant"), { recursive: true });
});

type Case = readonly [key: ConfigKey, own: ConfigValue, committed: ConfigValue];

/** What the clone's owner set, and what a committed file would rather have: all looser ones, all stricter ones. */
function cases(key: ConfigKey): { looser: Case[]; stricter: Case[] } {
  const setting = settingOf(key);
  const one = (own: ConfigValue, committed: ConfigValue): Case => [key, own, committed];
  const [low, high] = pairOf(key);
  const up = one(low, high);
  const down = one(high, low);
  switch (setting.tighten) {
    case "lower":
    case "subset":
    case "off":
      return { looser: [up], stricter: [down] };
    case "higher":
    case "superset":
    case "on":
    case "later":
      return { looser: [down], stricter: [up] };
    case "free":
      return { looser: [], stricter: [up, down] };
    // Fewer entries than somebody else's take none of theirs away.
    case "adding":
      return { looser: [], stricter: [up] };
    default:
      return { looser: [up, down], stricter: [] };
  }
}

/** Two values, the smaller, shorter, earlier or false one first; numbers at their bounds. */
function pairOf(key: ConfigKey): [ConfigValue, ConfigValue] {
  const setting = settingOf(key);
  switch (setting.type) {
    case "int":
      return [setting.min, setting.max];
    case "bool":
      return [false, true];
    case "enum":
      return [setting.values[0]!, setting.values.at(-1)!];
    case "string":
      return [setting.default ?? setting.example, key === "sync.claims_prefix" ? "refs/heads/x/" : "another"];
    case "strings": {
      const fits = (entry: string) =>
        setting.pattern.test(entry) && (setting.check?.(entry) ?? null) === null;
      const entries = [...setting.default, ...SOME.filter(fits)];
      return [entries.slice(0, 1), [...new Set(entries)]];
    }
    case "ints":
      return [tableOf(setting.names, setting.min), tableOf(setting.names, setting.max)];
    case "lists":
      return [
        { ...setting.default, own: ["a"] },
        { ...setting.default, own: ["a", "b"] },
      ];
  }
}

const SOME = ["main", "agent:*", "issue", "file", "docs", "agent:* never a", "agent:* never b"];
const tableOf = (names: readonly string[], value: number) =>
  Object.fromEntries(names.map((name) => [name, value]));

async function configWith([key, own, committed]: Case, trust: Trust = NO_TRUST): Promise<Config> {
  const [section, name] = key.split(".");
  const text = (value: ConfigValue) => (value === null ? "" : `[${section}]\n${name} = ${tomlOf(value)}\n`);
  fs.writeFileSync(path.join(root, ".cotenant/config.toml"), text(committed));
  fs.writeFileSync(path.join(root, "home/cotenant/config.toml"), text(own));
  const env = { XDG_CONFIG_HOME: path.join(root, "home") };
  const systemDirectory = path.join(root, "etc");
  const { config, problems } = await inspectConfig({
    ...{ platform, env, home: null, worktreeRoot: root, systemDirectory, trust },
  });
  expect(problems).toEqual([]);
  return config;
}

/** What accepts one value only cannot go anywhere. */
const MOVING = CONFIG_KEYS.filter((key) => {
  const setting = settingOf(key);
  const isFixed =
    setting.type === "bool" ? setting.only : setting.type === "enum" && setting.values.length === 1;
  return isFixed !== true;
});

describe("a committed value that nobody trusts", () => {
  it.each(MOVING)("of %s has its effect where it tightens, and none where it loosens", async (key) => {
    const { looser, stricter } = cases(key);
    for (const each of stricter) {
      const config = await configWith(each);
      expect(config.untrusted, JSON.stringify(each)).toEqual([]);
      expect(config.values[key], JSON.stringify(each)).toEqual(each[2]);
    }
    for (const each of looser) {
      const config = await configWith(each);
      expect(config.values[key], JSON.stringify(each)).toEqual(each[1]);
      expect(config.untrusted, JSON.stringify(each)).toMatchObject([
        { key, value: each[2], instead: each[1] },
      ]);
      const digest = digestOf(platform.digest, each[2]);
      const trusted = { subject: subjectOf(key), digest, trustedAt: "then", trustedBy: "human:me" };
      const allowed = await configWith(each, { entries: [trusted], problem: null });
      expect(allowed.values[key], JSON.stringify(each)).toEqual(each[2]);
    }
  });

  /** Each of these lets somebody take what another holds, sooner than the clone's owner said. */
  it.each([
    ["guard.unknown_ttl_secs", 1_800, 1],
    ["guard.stop_idle_secs", 30, 0],
    ["sync.claim_timeout_hours", null, 1],
    ["sync.claim_timeout_hours", 24, 1],
    ["sync.claim_ttl_secs", 3_600, 60],
    ["sync.clock_skew_secs", 30, 0],
    ["coordination.default_ttl_secs", 600, 1],
    ["coordination.max_total_secs", 86_400, 1],
  ] as const)("cannot make leases end sooner by %s from %j to %j", async (key, own, committed) => {
    expect((await configWith([key, own, committed])).values[key]).toEqual(own);
  });

  /** Each of these makes hooks, guard or ledger give up, and giving up lets something through. */
  it.each([
    ["guard.deadline_secs", 10, 1],
    ["enforce.deadline_secs", 5, 1],
    ["store.busy_timeout_secs", 10, 1],
    ["sync.network_timeout", 30, 1],
  ] as const)("cannot make a check give up sooner by %s from %j to %j", async (key, own, committed) => {
    expect((await configWith([key, own, committed])).values[key]).toEqual(own);
  });

  it("that names a ledger binds before it is trusted, and is not used", async () => {
    const key = "sync.ledger_branch";
    const config = await configWith([key, null, "cotenant-sync"]);
    expect(config.values[key]).toBeNull();
    expect(config.namedOnly(key)).toMatchObject({ key, value: "cotenant-sync", does: "names" });
    expect((await configWith([key, "mine", "cotenant-sync"])).namedOnly(key)).toBeNull();
    expect((await configWith([key, null, null])).namedOnly(key)).toBeNull();
  });
});

/** As a list, a table or one word is written in a variable. */
function variableText(value: ConfigValue): string {
  if (Array.isArray(value)) return value.join(",");
  if (typeof value !== "object" || value === null) return String(value);
  const entries = Object.entries(value as Record<string, unknown>);
  return entries.map(([name, each]) => `${name}=${Array.isArray(each) ? each.join(":") : each}`).join(",");
}

describe("a variable of the environment", () => {
  async function configOf([key, committed, wanted]: Case): Promise<Config> {
    const [section, name] = key.split(".");
    const text = committed === null ? "" : `[${section}]\n${name} = ${tomlOf(committed)}\n`;
    fs.writeFileSync(path.join(root, ".cotenant/config.toml"), text);
    const digest = digestOf(platform.digest, committed);
    const trusted = { subject: subjectOf(key), digest, trustedAt: "then", trustedBy: "human:me" };
    const { config, problems } = await inspectConfig({
      ...{ platform, home: null, worktreeRoot: root, systemDirectory: path.join(root, "etc") },
      env: { [variableOf(key)]: variableText(wanted) },
      trust: { entries: [trusted], problem: null },
    });
    expect(problems).toEqual([]);
    return config;
  }

  it.each(MOVING)("tightens what the repository's file sets of %s, and loosens none of it", async (key) => {
    const { looser, stricter } = cases(key);
    for (const each of stricter) {
      const config = await configOf(each);
      expect(config.overruled, JSON.stringify(each)).toEqual([]);
      expect(config.values[key], JSON.stringify(each)).toEqual(each[2]);
    }
    for (const each of looser) {
      const config = await configOf(each);
      expect(config.values[key], JSON.stringify(each)).toEqual(each[1]);
      expect(config.origin(key).source).toBe("worktree");
      expect(config.overruled, JSON.stringify(each)).toMatchObject([
        { key, variable: variableOf(key), value: each[2], line: 2 },
      ]);
    }
  });

  it("decides where the repository's file says nothing", async () => {
    const config = await configOf(["policy.evict", null, ["agent:*"]]);
    expect(config.overruled).toEqual([]);
    expect(config.policy.evict).toEqual(["agent:*"]);
  });
});

describe("a number from a committed file", () => {
  const numbers = CONFIG_KEYS.filter((key) => settingOf(key).type === "int");

  it.each(numbers)("%s is taken at its bounds and refused beyond them", async (key) => {
    const setting = settingOf(key) as { min: number; max: number };
    const [section, name] = key.split(".");
    const read = async (value: bigint | string) => {
      fs.writeFileSync(path.join(root, ".cotenant/config.toml"), `[${section}]\n${name} = ${value}\n`);
      const systemDirectory = path.join(root, "etc");
      return inspectConfig({ platform, env: {}, home: null, worktreeRoot: root, systemDirectory });
    };
    for (const value of [setting.min, setting.max])
      expect((await read(BigInt(value))).problems, `${value}`).toEqual([]);
    const beyond = [BigInt(setting.min) - 1n, BigInt(setting.max) + 1n, 2n ** 63n - 1n, -(2n ** 63n)];
    for (const value of [...beyond, "1.0", "1e3", "inf", "nan", "2024-01-01", '"1"'])
      expect((await read(value)).problems, `${value}`).toHaveLength(1);
  });
});
