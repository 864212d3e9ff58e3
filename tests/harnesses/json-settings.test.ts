import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  isBareFrame,
  type Placement,
  placed,
  readSettings,
  taken,
} from "../../src/features/harnesses/json-settings";
import { nodeValue, readJson } from "../../src/features/harnesses/json-text";
import type { HarnessName } from "../../src/identity/harness";

const PROGRAM = { node: "/opt/node 20/bin/node", program: "/opt/it's/cotenant" };
const OTHER = { node: "/usr/bin/node", program: "/elsewhere/cotenant" };
const digestOf = (text: string) => createHash("sha256").update(text).digest("hex");

interface Put {
  readonly text: string;
  readonly placement: Placement;
}

function put(harness: HarnessName, before: string, program: typeof PROGRAM | null = PROGRAM): Put {
  const next = placed(harness, before, program);
  if ("why" in next) throw new Error(`${next.why}: ${before}`);
  return { text: next.text, placement: { digest: digestOf(next.text), splices: next.splices } };
}

function take(text: string, ...placements: Placement[]): string {
  const out = taken(text, placements, digestOf);
  if ("why" in out) throw new Error(out.why);
  return out.text;
}

function valueIn(text: string): Record<string, unknown> {
  const json = readJson(text);
  if (typeof json === "string") throw new Error(json);
  return JSON.parse(JSON.stringify(json.root === null ? {} : nodeValue(json.root)));
}

const events = (text: string) => {
  const read = readSettings(text);
  return "why" in read ? read.why : read.entries.map(({ event }) => event);
};

describe("entries of ours in somebody's JSON", () => {
  const CASES: Record<string, string> = {
    "nothing at all": "",
    "only white space": " \n\n",
    "an empty object": "{}",
    "an empty object on two lines": "{\n}\n",
    "one line": '{"model": "opus"}',
    "no final newline": '{\n  "model": "opus"\n}',
    tabs: '{\n\t"model": "opus",\n\t"env": {\n\t\t"A": "1"\n\t}\n}\n',
    "four spaces": '{\n    "model": "opus"\n}\n',
    "Windows line ends": '{\r\n  "model": "opus",\r\n  "hooks": {\r\n    "Stop": []\r\n  }\r\n}\r\n',
    "a byte order mark": '\uFEFF{\n  "model": "opus"\n}\n',
    "comments everywhere":
      '// mine\n{ // here\n  "model": "opus", // the best\n  /* before */ "hooks": { /* inside */\n    "Stop": [ // none\n    ]\n    // at the end\n  } // after\n  // last\n}\n// really\n',
    "a comment behind the last one": '{\n  "model": "opus" // the best, so far\n}\n',
    "trailing commas":
      '{\n  "model": "opus",\n  "hooks": {\n    "PreToolUse": [\n      {"hooks": []},\n    ],\n  },\n}\n',
    "hooks of others":
      '{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"lint"}]}],"Stop":[{"hooks":[{"type":"command","command":"beep"}]}]}}',
    "words that look like structure": '{"text": "}],{\\" // not /* a comment */", "emoji": "🧡"}',
    "two of one name": '{"hooks": {"Stop": [1]}, "hooks": {"Stop": [2]}}',
  };

  it.each(Object.entries(CASES))("come and go without a trace: %s", (_, before) => {
    for (const harness of ["claude", "cursor", "gemini"] as const) {
      const { text, placement } = put(harness, before);
      expect(events(text)).toContain(
        harness === "claude" ? "PreToolUse" : harness === "cursor" ? "preToolUse" : "BeforeTool",
      );
      expect(take(text, placement)).toBe(before);
    }
  });

  it("are found and taken out without what was remembered, too", () => {
    for (const before of Object.values(CASES)) {
      const out = take(put("claude", before).text);
      expect(events(out), before).toEqual([]);
      const bare = (text: string) => {
        const { hooks, ...rest } = valueIn(text) as { hooks?: Record<string, unknown[]> };
        const kept = Object.entries(hooks ?? {}).filter(([, list]) => list.length > 0);
        return { rest, kept };
      };
      expect(bare(out), before).toEqual(bare(before));
    }
  });

  it("are found again in a file that somebody has changed since", () => {
    const before = '{\n  "model": "opus"\n}\n';
    const { text, placement } = put("claude", before);
    const changed = text.replace('"opus"', '"haiku", // cheaper\n  "theme": "dark"');
    expect(take(changed, placement)).toBe('{\n  "model": "haiku", // cheaper\n  "theme": "dark"\n}\n');
    const joined = text.replace(
      '"PreToolUse": [',
      '"PreToolUse": [\n      { "matcher": "Read", "hooks": [] },',
    );
    const left = take(joined, placement);
    expect(valueIn(left)).toEqual({ model: "opus", hooks: { PreToolUse: [{ matcher: "Read", hooks: [] }] } });
  });

  it("leave a handler that somebody put into the same group", () => {
    const { text } = put("claude", "{}");
    const value = valueIn(text) as { hooks: Record<string, { hooks: object[] }[]> };
    value.hooks["Stop"]![0]!.hooks.unshift({ type: "command", command: "beep" });
    const out = valueIn(take(JSON.stringify(value)));
    expect(out).toEqual({ hooks: { Stop: [{ hooks: [{ type: "command", command: "beep" }] }] } });
  });

  it("of another version, another path or twice are replaced by one", () => {
    const old = put("claude", "{}", OTHER).text;
    const value = valueIn(old) as { hooks: Record<string, object[]> };
    value.hooks["PreToolUse"]!.push(...value.hooks["PreToolUse"]!);
    value.hooks["Notification"] = value.hooks["Stop"]!;
    const base = take(JSON.stringify(value, null, 2));
    const { text } = put("claude", base);
    expect(events(text)).toEqual(events(put("claude", "{}").text));
    expect(text).not.toContain("/elsewhere/");
  });

  it("written by hand stay, and are not doubled", () => {
    const mine =
      '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"cotenant guard stop --harness claude"}]}]}}';
    const { text, placement } = put("claude", mine);
    expect(events(text)).toHaveLength(new Set(events(text)).size);
    expect(take(text, placement)).toBe(mine);
    expect(valueIn(take(text))).toEqual(valueIn(mine));
  });

  it("do not take the place of somebody else's worktrees", () => {
    const theirs = '{"hooks":{"WorktreeCreate":[{"hooks":[{"type":"command","command":"wt add"}]}]}}';
    expect(events(put("claude", theirs).text)).not.toContain("WorktreeCreate");
    expect(events(put("claude", "{}").text)).toContain("WorktreeCreate");
    expect(events(put("claude", "{}", null).text), "where the program may be missing").not.toContain(
      "WorktreeCreate",
    );
  });

  it.each([
    ["broken", '{"a": }', /line 1/],
    ["cut off", '{"a": {"b": [1, 2', /cannot be read/],
    ["no object", "[1]", /no JSON object/],
    ["a word", "null", /no JSON object/],
    ["hooks that are a list", '{"hooks": []}', /no object/],
    ["an event that is a word", '{"hooks": {"Stop": "beep"}}', /no list/],
    ["deep", `${"[".repeat(100_000)}`, /deep/],
    ["deep and whole", `{"a":${"[".repeat(50_000)}${"]".repeat(50_000)}}`, /deep/],
  ])("are not put into what is %s", (_, text, why) => {
    const next = placed("claude", text, PROGRAM);
    expect("why" in next ? next.why : "").toMatch(why);
  });

  it("know a frame that is left of a file of ours", () => {
    expect(
      ["{}", '{"version":1,"hooks":{}}', '{"$version":4,"hooks":{}}', "", "{\n}\n"].every(isBareFrame),
    ).toBe(true);
    expect(['{"a":1}', '{"version":2}', "{} // mine", '{"hooks":{"Stop":[1]}}', "["].some(isBareFrame)).toBe(
      false,
    );
  });
});

describe("any JSON", () => {
  const space = fc.constantFrom("", "", " ", "\n", "\r\n", "\n  ", " // remark\n", "/* remark */", "\n\t");
  const key = fc.constantFrom("hooks", "PreToolUse", "Stop", "matcher", "a", "__proto__", "", '"', "🧡");
  const leaf = fc.oneof(
    fc.integer(),
    fc.constantFrom("x", "// no", "}", '"', "\\"),
    fc.boolean(),
    fc.constant(null),
  );
  const join = (items: readonly string[], trailing: boolean) =>
    items.join(",") + (trailing && items.length > 0 ? "," : "");
  const listOf = (item: fc.Arbitrary<string>): fc.Arbitrary<string> =>
    fc.tuple(fc.array(fc.tuple(space, item, space), { maxLength: 3 }), fc.boolean(), space).map(
      ([items, trailing, gap]) =>
        `[${join(
          items.map((parts) => parts.join("")),
          trailing,
        )}${gap}]`,
    );
  /** `hooks` and its events have the types that they must have. */
  const objectOf = (depth: number): fc.Arbitrary<string> => {
    const value = depth === 0 ? leaf.map((one) => JSON.stringify(one)) : anyOf(depth - 1);
    const inner = depth === 0 ? fc.constant("{}") : objectOf(depth - 1);
    const member = fc.tuple(space, key, space, value, inner, listOf(value), space);
    const typed = (name: string, any: string, object: string, list: string) =>
      name === "hooks" ? object : name === "PreToolUse" || name === "Stop" ? list : any;
    return fc
      .tuple(fc.uniqueArray(member, { maxLength: 4, selector: ([, name]) => name }), fc.boolean(), space)
      .map(([members, trailing, gap]) => {
        const texts = members.map(
          ([a, name, b, any, object, list, c]) =>
            `${a}${JSON.stringify(name)}${b}:${typed(name, any, object, list)}${c}`,
        );
        return `{${join(texts, trailing)}${gap}}`;
      });
  };
  const anyOf = (depth: number): fc.Arbitrary<string> =>
    fc.oneof(
      leaf.map((one) => JSON.stringify(one)),
      objectOf(depth),
      listOf(leaf.map((one) => JSON.stringify(one))),
    );
  const object = objectOf(2);

  it("is afterwards as it was, and keeps its values meanwhile", () => {
    fc.assert(
      fc.property(
        object,
        space,
        space,
        fc.constantFrom("claude", "cursor", "copilot", "gemini", "codex", "qwen"),
        (body, head, tail, harness) => {
          const before = head + body + tail;
          const { text, placement } = put(harness as HarnessName, before);
          expect(take(text, placement)).toBe(before);
          const [old, now] = [valueIn(before), valueIn(text)];
          const { hooks: oldHooks = {}, ...oldRest } = old as { hooks?: Record<string, unknown[]> };
          const {
            hooks = {},
            version: _,
            ...rest
          } = now as { hooks?: Record<string, unknown[]>; version?: number };
          expect(rest).toEqual(oldRest);
          for (const [event, list] of Object.entries(oldHooks))
            expect(Array.isArray(list) ? hooks[event]?.slice(0, list.length) : hooks[event]).toEqual(list);
          // Without what was remembered, nothing but our own and what is empty may go.
          expect(events(take(text))).toEqual([]);
          expect(placed(harness as HarnessName, take(text), PROGRAM)).toHaveProperty("text");
        },
      ),
      { numRuns: Number(process.env["TEST_PROPERTY_RUNS"] ?? 300) },
    );
  });
});
