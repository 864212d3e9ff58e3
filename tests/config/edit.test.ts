import fc from "fast-check";
import { parse } from "smol-toml";
import { describe, expect, it } from "vitest";
import { removeKey, setKey } from "../../src/config/edit";
import { CONFIG_KEYS, nameInSection, sectionOf, settingOf } from "../../src/config/schema";
import { configTemplate } from "../../src/config/template";
import { tomlOf } from "../../src/config/values";
import { amount } from "../support/sample";

const TTL = ["coordination", "default_ttl_secs"] as const;

describe("setting a key", () => {
  it("in the file that init wrote goes below the line that shows its default, and reset takes it away", () => {
    const template = configTemplate();
    const edited = setKey(template, TTL, "1200");
    expect(edited).toContain("# default_ttl_secs = 600\ndefault_ttl_secs = 1200\n");
    expect(edited.replace("default_ttl_secs = 1200\n", "")).toBe(template);
    expect(removeKey(edited, TTL)).toBe(template);
  });

  it.each([
    ["an empty file", "", "[coordination]\ndefault_ttl_secs = 9\n"],
    [
      "a file without the section",
      "[guard]\nretry_secs = 1",
      "[guard]\nretry_secs = 1\n\n[coordination]\ndefault_ttl_secs = 9\n",
    ],
    ["an empty section", "[coordination]\n[guard]\n", "[coordination]\ndefault_ttl_secs = 9\n[guard]\n"],
    ["a section without a last newline", "[coordination]", "[coordination]\ndefault_ttl_secs = 9\n"],
    [
      "its old value, comment and all",
      "[coordination] # x\ndefault_ttl_secs = 5 # five\n",
      "[coordination] # x\ndefault_ttl_secs = 9 # five\n",
    ],
    ["dotted keys", "coordination.default_ttl_secs = 5\n", "coordination.default_ttl_secs = 9\n"],
    [
      "an inline table",
      "coordination = { default_ttl_secs = 5 }\n",
      "coordination = { default_ttl_secs = 9 }\n",
    ],
    [
      "quoted names",
      '["coordination"]\n"default_ttl_secs" = 5\n',
      '["coordination"]\n"default_ttl_secs" = 9\n',
    ],
    ["Windows line ends", "[coordination]\r\n", "[coordination]\r\ndefault_ttl_secs = 9\r\n"],
  ])("in %s", (_, before, after) => {
    expect(setKey(before, TTL, "9")).toBe(after);
  });

  it("replaces a list over several lines, with its comments", () => {
    const before = '[policy]\nevict = [ # who\n  "human:*", # people\n]\nindefinite = []\n';
    expect(setKey(before, ["policy", "evict"], '["admin:*"]')).toBe(
      '[policy]\nevict = ["admin:*"]\nindefinite = []\n',
    );
  });

  it.each([
    ["a section of its own", "[policy.max_ttl_secs]\nagent = 5\n", "is a section of its own"],
    ["an inline table of the whole section", "policy = { evict = [] }\n", "unusual"],
  ])("says that it cannot where the key is %s", (_, before, why) => {
    expect(() => setKey(before, ["policy", "max_ttl_secs"], "{ agent = 6 }")).toThrow(why);
  });

  it("changes nothing else, whatever the file sets already", () => {
    const settings = fc.subarray([...CONFIG_KEYS]);
    fc.assert(
      fc.property(settings, fc.constantFrom(...CONFIG_KEYS), fc.boolean(), (present, key, remove) => {
        const exampleOf = (one: (typeof CONFIG_KEYS)[number]) => {
          const setting = settingOf(one);
          return tomlOf(setting.default ?? (setting.type === "string" ? setting.example : 1));
        };
        const put = (text: string, one: (typeof CONFIG_KEYS)[number]) =>
          setKey(text, [sectionOf(one), nameInSection(one)], exampleOf(one));
        const before = present.reduce(put, configTemplate());
        const after = remove ? removeKey(before, [sectionOf(key), nameInSection(key)]) : put(before, key);
        const read = (text: string) => parse(text) as Record<string, Record<string, unknown>>;
        const wanted = read(before);
        if (remove) delete wanted[sectionOf(key)]![nameInSection(key)];
        else wanted[sectionOf(key)]![nameInSection(key)] = parse(`x = ${exampleOf(key)}`)["x"];
        expect(read(after)).toEqual(wanted);
        expect(after.match(/^#.*$/gm)).toEqual(before.match(/^#.*$/gm));
      }),
      { numRuns: amount(200, 4) },
    );
  });
});
