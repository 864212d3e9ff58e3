import { parse } from "smol-toml";
import { describe, expect, it } from "vitest";
import { editDistance, nearest } from "../../src/config/nearest";
import {
  CONFIG_KEYS,
  CONFIG_SECTIONS,
  nameInSection,
  sectionOf,
  settingOf,
  variableOf,
} from "../../src/config/schema";
import { configTemplate } from "../../src/config/template";
import { loosens } from "../../src/config/tighten";
import { isWrong, valueFromToml } from "../../src/config/values";

describe("the schema", () => {
  it.each(CONFIG_KEYS)(
    "%s has a default that it accepts itself, a meaning and a variable of its own",
    (key) => {
      const setting = settingOf(key);
      expect(key).toMatch(/^[a-z_]+\.[a-z_]+$/);
      expect(setting.meaning).toMatch(/^[A-Za-z'].*\.$/);
      if (setting.default !== null) {
        const raw = parse(`x = ${tomlOf(setting.default)}`, { integersAsBigInt: true })["x"];
        const value = valueFromToml(setting, raw);
        expect(isWrong(value)).toBe(false);
        expect(value).toEqual(setting.default);
      }
      expect(CONFIG_KEYS.filter((other) => variableOf(other) === variableOf(key))).toEqual([key]);
    },
  );

  it("knows which way every kind of value becomes stricter", () => {
    const allowed = {
      int: ["lower", "higher", "trusted", "free"],
      bool: ["on", "off", "trusted", "free"],
      enum: ["later", "trusted", "free"],
      string: ["command", "trusted", "naming", "free"],
      strings: ["adding", "subset", "superset", "command", "trusted", "free"],
      ints: ["lower", "higher", "free"],
      lists: ["trusted"],
    };
    for (const key of CONFIG_KEYS) expect(allowed[settingOf(key).type]).toContain(settingOf(key).tighten);
  });
});

describe("a branch in a setting", () => {
  const setting = settingOf("sync.ledger_branch");

  it.each(["main", "a/b", "é", "x@y", "a.b", "locks/lock"])("may be called %s", (name) => {
    expect(valueFromToml(setting, name)).toBe(name);
  });

  it.each([
    "",
    "-x",
    ".x",
    "/x",
    "x/",
    "x.",
    "a..b",
    "a//b",
    "a/.b",
    "x.lock",
    "x.lock/y",
    "@",
    "a@{b",
    "a b",
  ])('is not called "%s": Git would refuse it later', (name) => {
    expect(isWrong(valueFromToml(setting, name))).toBe(true);
  });
});

function tomlOf(value: unknown): string {
  if (typeof value !== "object" || Array.isArray(value)) return JSON.stringify(value);
  return `{ ${Object.entries(value as object).map(([name, entry]) => `${name} = ${JSON.stringify(entry)}`)} }`;
}

describe("loosening", () => {
  it.each([
    ["coordination.stale_threshold_secs", 600, 601, true],
    ["coordination.stale_threshold_secs", 600, 599, false],
    ["coordination.default_ttl_secs", 600, 601, true],
    ["coordination.default_ttl_secs", 600, 599, true],
    ["coordination.default_ttl_secs", 600, 600, false],
    ["sync.claim_timeout_hours", null, 8_760, true],
    ["sync.claim_timeout_hours", 24, 23, true],
    ["sync.claim_timeout_hours", 23, 24, false],
    ["sync.claim_timeout_hours", 24, null, false],
    ["worktree.enforce_leases", "strict", "warn", true],
    ["worktree.enforce_leases", "warn", "strict", false],
    ["worktree.enforce_leases", "off", "off", false],
    ["global_operations.require_main_history", true, false, true],
    ["global_operations.require_main_history", false, true, false],
    ["publish.unfenced_remote", false, true, true],
    ["publish.unfenced_remote", true, false, false],
    ["policy.evict", ["human:*", "admin:*"], ["human:*"], false],
    ["policy.evict", ["human:*"], ["human:*", "agent:*"], true],
    ["policy.evict", ["human:*"], [], false],
    ["policy.max_ttl_secs", { agent: 10 }, { agent: 9 }, false],
    ["policy.max_ttl_secs", { agent: 10 }, { agent: 11 }, true],
    ["policy.max_ttl_secs", { agent: 10 }, {}, true],
    ["policy.max_ttl_secs", { agent: 10 }, { agent: 10, human: 5 }, false],
    ["global_operations.main_branch", null, "weak", true],
    ["global_operations.main_branch", "main", "main", false],
    ["guard.retry_secs", 180, 1, false],
  ] as const)("%s from %j to %j: %s", (key, base, wanted, expected) => {
    expect(loosens(key, base, wanted)).toBe(expected);
  });
});

describe("the template", () => {
  it("sets nothing, and explains everything", () => {
    const template = configTemplate();
    const root = parse(template);
    expect(Object.keys(root)).toEqual([...CONFIG_SECTIONS]);
    for (const section of Object.values(root)) expect(section).toEqual({});
    for (const key of CONFIG_KEYS) expect(template).toContain(`\n# ${nameInSection(key)} = `);
    const prose = template.split("\n").filter((line) => !/^# [a-z_]+ = [[{]/.test(line));
    for (const line of prose) expect(line.length).toBeLessThanOrEqual(110);
  });

  it("shows the defaults: with every # removed it is valid and changes nothing", () => {
    const names = new Set(CONFIG_KEYS.map(nameInSection));
    const live = configTemplate().replace(/^# ([a-z_]+) = /gm, (whole, name) =>
      names.has(name) ? whole.slice(2) : whole,
    );
    const root = parse(live, { integersAsBigInt: true }) as Record<string, Record<string, unknown>>;
    for (const key of CONFIG_KEYS) {
      const setting = settingOf(key);
      const value = valueFromToml(setting, root[sectionOf(key)]![nameInSection(key)]);
      const example =
        setting.type === "string" ? setting.example : setting.type === "int" ? setting.max : null;
      expect(value, key).toEqual(setting.default ?? example);
    }
  });
});

describe("the nearest", () => {
  it("is what a typing error most likely meant", () => {
    expect(editDistance("retry_secs", "retry_sesc")).toBe(1);
    expect(editDistance("abc", "")).toBe(3);
    expect(editDistance("kitten", "sitting")).toBe(3);
    expect(nearest("wroktree", CONFIG_SECTIONS)).toBe("worktree");
    expect(nearest("LOCKS", CONFIG_SECTIONS)).toBe("locks");
    expect(nearest("entirely-else", CONFIG_SECTIONS)).toBeNull();
    expect(nearest("x".repeat(100_000), CONFIG_SECTIONS)).toBeNull();
  });
});
