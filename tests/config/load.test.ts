import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { type ConfigQuestion, inspectConfig, loadConfig } from "../../src/config/load";
import { CONFIG_KEYS, settingOf, variableOf } from "../../src/config/schema";
import { CotenantError } from "../../src/errors/cotenant-error";
import { DEFAULT_POLICY } from "../../src/kernel/policy";
import { nodePlatform } from "../../src/platform/node/node";

const platform = nodePlatform();
const room = fs.mkdtempSync(path.join(os.tmpdir(), "cotenant-config-"));
afterAll(() => fs.rmSync(room, { recursive: true, force: true }));

const FILES = {
  worktree: path.join(room, "tree/.cotenant/config.toml"),
  user: path.join(room, "home/.config/cotenant/config.toml"),
  system: path.join(room, "etc/config.toml"),
};

function write(file: string, content: string | Uint8Array): void {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, content);
}

beforeEach(() => {
  for (const file of Object.values(FILES)) fs.rmSync(file, { force: true });
});

const question = (more: Partial<ConfigQuestion> = {}): ConfigQuestion => ({
  platform,
  env: {},
  home: path.join(room, "home"),
  worktreeRoot: path.join(room, "tree"),
  systemDirectory: path.join(room, "etc"),
  ...more,
});
const load = (more: Partial<ConfigQuestion> = {}) => loadConfig(question(more));
const failure = (more: Partial<ConfigQuestion> = {}) =>
  load(more).then(
    () => {
      throw new Error("it was accepted");
    },
    (error: unknown) => {
      expect(error).toBeInstanceOf(CotenantError);
      expect((error as CotenantError).code).toBe("E_CONFIG");
      return error as CotenantError;
    },
  );

describe("without any source", () => {
  it("every value is its default, and the policy is the kernel's", async () => {
    for (const more of [{}, { home: null, worktreeRoot: null }]) {
      const config = await load(more);
      for (const key of CONFIG_KEYS) {
        expect(config.values[key]).toEqual(settingOf(key).default);
        expect(config.origin(key)).toEqual({ source: "default", place: "default", line: null });
      }
      expect(config.policy).toEqual(DEFAULT_POLICY);
    }
  });
});

describe("sources", () => {
  it("are asked in order, and a value says where it came from", async () => {
    const key = "guard.retry_secs";
    write(FILES.system, "[guard]\nretry_secs = 1\nstop_idle_secs = 11\n");
    expect((await load()).origin(key)).toEqual({ source: "system", place: FILES.system, line: 2 });
    write(FILES.user, "\n[guard]\nretry_secs = 2\n");
    expect((await load()).origin(key)).toEqual({ source: "user", place: FILES.user, line: 3 });
    write(FILES.worktree, "guard.retry_secs = 3\n");
    expect((await load()).origin(key)).toEqual({ source: "worktree", place: FILES.worktree, line: 1 });
    const env = { COTENANT_GUARD_RETRY_SECS: "4" };
    expect((await load({ env })).origin(key)).toEqual({
      source: "environment",
      place: "COTENANT_GUARD_RETRY_SECS",
      line: null,
    });
    const all = await load({ env, flags: { [key]: 5 } });
    expect(all.origin(key)).toEqual({ source: "flag", place: "command line", line: null });
    expect(all.values[key]).toBe(5);
    expect(all.layers.map(({ source, entries }) => [source, entries.get(key)?.value])).toEqual([
      ["flag", 5],
      ["environment", 4],
      ["worktree", 3],
      ["user", 2],
      ["system", 1],
    ]);
    // What the upper ones do not set shows through.
    expect(all.values["guard.stop_idle_secs"]).toBe(11);
    expect(all.policy.stopIdleSecs).toBe(11);
  });

  it("follow XDG_CONFIG_HOME when it is absolute", async () => {
    write(path.join(room, "xdg/cotenant/config.toml"), "[guard]\nretry_secs = 7\n");
    write(FILES.user, "[guard]\nretry_secs = 8\n");
    const read = async (xdg: string) =>
      (await load({ env: { XDG_CONFIG_HOME: xdg } })).values["guard.retry_secs"];
    expect(await read(path.join(room, "xdg"))).toBe(7);
    expect(await read("relative")).toBe(8);
    expect(await read("")).toBe(8);
  });

  it("set every key, in TOML, in the environment and as a flag", async () => {
    for (const key of CONFIG_KEYS) {
      const { text, toml, value } = otherValue(key);
      write(FILES.user, `[${key.split(".")[0]}]\n${key.split(".")[1]} = ${toml}\n`);
      expect((await load()).values[key], key).toEqual(value);
      fs.rmSync(FILES.user);
      expect((await load({ env: { [variableOf(key)]: text } })).values[key], key).toEqual(value);
      expect((await load({ flags: { [key]: text } })).values[key], key).toEqual(value);
      expect((await load({ flags: { [key]: value } })).values[key], key).toEqual(value);
    }
  });

  /** A valid value that is not the default, wherever there is one. */
  function otherValue(key: (typeof CONFIG_KEYS)[number]): { text: string; toml: string; value: unknown } {
    const setting = settingOf(key);
    switch (setting.type) {
      case "int": {
        const value = setting.default === setting.max ? setting.min : setting.max;
        return { text: String(value), toml: String(value), value };
      }
      case "bool": {
        const value = setting.only === true ? true : !setting.default;
        return { text: value ? "1" : "FALSE", toml: String(value), value };
      }
      case "enum": {
        const value = setting.values.find((one) => one !== setting.default) ?? setting.default;
        return { text: ` ${value} `, toml: `"${value}"`, value };
      }
      case "string":
        return { text: setting.example, toml: JSON.stringify(setting.example), value: setting.example };
      case "strings": {
        const value = [setting.default[0] ?? (setting.check === undefined ? "trunk" : "agent:* never a")];
        return { text: ` ${value[0]} , ${value[0]}`, toml: JSON.stringify(value), value };
      }
      case "ints":
        return {
          text: "human=5, agent = 6",
          toml: "{ human = 5, agent = 6 }",
          value: { ...setting.default, human: 5, agent: 6 },
        };
      case "lists":
        return {
          text: "docs=docs/:README.md",
          toml: '{ docs = ["docs/", "README.md"] }',
          value: { ...setting.default, docs: ["docs/", "README.md"] },
        };
    }
  }

  it("override a table entry by entry, so that naming one limit lifts no other", async () => {
    write(FILES.system, "[policy.max_ttl_secs]\nci = 100\nhuman = 200\n");
    write(FILES.worktree, "[policy]\nmax_ttl_secs = { human = 150 }\n");
    const { policy } = await load({ env: { COTENANT_POLICY_MAX_TTL_SECS: "admin=1" } });
    expect(policy.maxTtlSecs).toEqual({ agent: 86_400, ci: 100, human: 150, admin: 1 });
  });

  it("understand an empty list and ignore other empty variables", async () => {
    const env = {
      COTENANT_POLICY_EVICT: "",
      COTENANT_GUARD_RETRY_SECS: "",
      COTENANT_POLICY_MAX_TTL_SECS: "",
    };
    const { values, origin } = await load({ env });
    expect(values["policy.evict"]).toEqual([]);
    expect(origin("guard.retry_secs").source).toBe("default");
    expect(values["policy.max_ttl_secs"]).toEqual(DEFAULT_POLICY.maxTtlSecs);
  });

  it("may begin with a byte-order mark and have other line ends", async () => {
    write(FILES.worktree, "\ufeff[guard]\r\nretry_secs = 9\r\n");
    const { values, origin } = await load();
    expect(values["guard.retry_secs"]).toBe(9);
    expect(origin("guard.retry_secs").line).toBe(2);
  });
});

describe("the environment", () => {
  it("has variables of ours that are no configuration", async () => {
    const names = [
      "AGENT_ID",
      "SESSION_ID",
      "SECRET",
      "DEBUG",
      "ALLOW_NETWORK_FS",
      "WORKTREE_ID",
      "SOMETHING_NEW",
    ];
    const env = Object.fromEntries(names.map((name) => [`COTENANT_${name}`, "x"]));
    expect((await load({ env })).policy).toEqual(DEFAULT_POLICY);
  });

  it("names variables that mean nothing, with the one that was meant", async () => {
    const names = ["AGENTID", "SESION_ID", "FOO", "GAURD_RETRY_SECS", "AGENT_ID", "GIT_PID", "PUBLISH_BASE"];
    const env = Object.fromEntries(names.map((name) => [`COTENANT_${name}`, "x"]));
    expect((await load({ env })).layers.flatMap(({ unknown }) => unknown ?? [])).toEqual([
      { variable: "COTENANT_AGENTID", nearest: "COTENANT_AGENT_ID" },
      { variable: "COTENANT_SESION_ID", nearest: "COTENANT_SESSION_ID" },
      { variable: "COTENANT_FOO", nearest: null },
      { variable: "COTENANT_GAURD_RETRY_SECS", nearest: "COTENANT_GUARD_RETRY_SECS" },
    ]);
  });

  it.each([
    ["COTENANT_GUARD_RETRY_SEC", "1", "COTENANT_GUARD_RETRY_SECS"],
    ["COTENANT_GLOBAL_OPERATIONS_MAIN_BRANC", "x", "COTENANT_GLOBAL_OPERATIONS_MAIN_BRANCH"],
    ["COTENANT_STORE_COMPLETELY_DIFFERENT_NAME", "x", null],
    ["COTENANT_GUARD_RETRY_SECS", "180s", null],
    ["COTENANT_GUARD_RETRY_SECS", "1e3", null],
    ["COTENANT_GUARD_RETRY_SECS", "0x10", null],
    ["COTENANT_GUARD_RETRY_SECS", "-5", null],
    ["COTENANT_EVENTS_ENABLE_SEQUENCES", "false", null],
    ["COTENANT_COORDINATION_AUTO_RENEW_LEASES", "yes", null],
    ["COTENANT_WORKTREE_ENFORCE_LEASES", "strikt", "strict"],
    ["COTENANT_POLICY_EVICT", "human:*,,", null],
    ["COTENANT_POLICY_MAX_TTL_SECS", "agent", null],
    ["COTENANT_POLICY_MAX_TTL_SECS", "agent=x", null],
    ["COTENANT_POLICY_MAX_TTL_SECS", "__proto__=5", null],
  ])("%s=%s is an error that names it", async (name, value, near) => {
    const error = await failure({ env: { [name]: value } });
    expect(error.message).toContain(name);
    expect(error.data["nearest"]).toBe(near);
    if (near !== null) expect(error.hint).toContain(near);
  });
});

describe("files that cannot be used", () => {
  const lines = fs
    .readFileSync(path.join(import.meta.dirname, "../../testing/corpora/config-refused.txt"), "utf8")
    .split("\n")
    .map((text, index) => ({ text, number: index + 1 }))
    .filter(({ text }) => text !== "" && !text.startsWith("#"));

  it.each(lines)("line $number: $text", async ({ text }) => {
    const [toml = "", line, key, near] = text.split("\t");
    const bytes = Buffer.from(
      toml
        .replace(/\\n/g, "\n")
        .replace(/\\x([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
      "latin1",
    );
    for (const file of [FILES.worktree, FILES.system]) {
      write(file, bytes);
      const error = await failure();
      expect(error.data).toMatchObject({
        file,
        line: line === "-" ? null : Number(line),
        key: key === "-" ? null : key,
        nearest: near === "-" ? null : near,
      });
      expect(error.message).toContain(file);
      expect(error.hint).not.toBe("");
      // One line, and nothing a terminal would obey.
      expect(error.message).not.toMatch(/[\p{Cc}]/u);
      fs.rmSync(file);
    }
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  it("are found at once, also behind long lines of blanks", async () => {
    write(FILES.worktree, `${" ".repeat(50_000)}\n[guard]\n${"\t ".repeat(20_000)}# \nbogus = 1\n`);
    expect((await failure()).data).toMatchObject({ line: 4, key: "guard.bogus" });
  });

  it("are not quoted: they may be a link to something private", async () => {
    write(path.join(room, "private"), "-----BEGIN KEY-----\nsecret words\n");
    fs.mkdirSync(path.dirname(FILES.worktree), { recursive: true });
    fs.symlinkSync(path.join(room, "private"), FILES.worktree);
    const error = await failure();
    expect(JSON.stringify(error)).not.toMatch(/BEGIN|secret words/);
  });

  it("may be directories or too large", async () => {
    fs.mkdirSync(FILES.worktree, { recursive: true });
    expect((await failure()).message).toContain("is a directory");
    fs.rmdirSync(FILES.worktree);
    write(FILES.worktree, `#${"x".repeat(1024 * 1024)}`);
    expect((await failure()).message).toContain("larger");
  });

  it("are reported all together, and inspected without an error", async () => {
    write(FILES.worktree, "[guard]\nretry_secs = 0\nstop_idle_secs = 50\n[gate]\n");
    write(FILES.system, "[store]\nbusy_timeout_secs = 'x'\n");
    const error = await failure({ env: { COTENANT_GUARD_X: "1" }, flags: { "no.such": 1 } });
    expect(error.data["problems"]).toHaveLength(5);
    expect(error.message).toContain("and 4 more");
    const { config, problems } = await inspectConfig(question());
    expect(problems.map(({ place, line }) => [place, line])).toEqual([
      [FILES.worktree, 2],
      [FILES.worktree, 4],
      [FILES.system, 2],
    ]);
    expect(config.values["guard.stop_idle_secs"]).toBe(50);
    expect(config.values["guard.retry_secs"]).toBe(180);
  });
});
