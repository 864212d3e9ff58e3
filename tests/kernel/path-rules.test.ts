import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fitsAllIn, fitsPattern, mayFitIn } from "../../src/kernel/path-patterns";
import {
  type PlacedRule,
  parsePathRule,
  pathJudge,
  ruledOut,
  whatInstead,
} from "../../src/kernel/path-rules";
import { propertyRuns, propertySeed } from "./property";

const placed = (text: string, source: PlacedRule["source"] = "settings"): PlacedRule => {
  const rule = parsePathRule(text);
  if ("wrong" in rule) throw new Error(`${text} ${rule.wrong}`);
  return { ...rule, place: "here", source };
};
const judge = (rules: readonly string[], agents: readonly string[], ignoreCase = false) =>
  pathJudge({ rules: rules.map((text) => placed(text)), ignoreCase }, agents);
const forbids = (rules: readonly string[], agent: string, path: string, ignoreCase = false) =>
  judge(rules, [agent], ignoreCase)?.writing(path)?.text ?? null;

const ISSUE = ".cotenant/issues/01M7F87SKQ7X3KZ979XRC4S87G";

describe("a rule of paths", () => {
  const NEVER = "agent:* never .github/** *.lock";
  const ONLY = "agent:docs-* only docs/** README.md";
  it.each([
    [NEVER, "agent:ada", ".github/workflows/ci.yml", true],
    [NEVER, "agent:ada", ".github/x", true],
    [NEVER, "agent:ada", "web/yarn.lock", true],
    [NEVER, "agent:ada", "docs/.github/x", false],
    [NEVER, "agent:ada", ".githubs/x", false],
    [NEVER, "agent:ada", ".GitHub/x", false],
    [NEVER, "agent:ada", "src/a.ts", false],
    [NEVER, "human:ada", ".github/x", false],
    [ONLY, "agent:docs-1", "docs/a/b.md", false],
    [ONLY, "agent:docs-1", "README.md", false],
    [ONLY, "agent:docs-1", "src/a.ts", true],
    [ONLY, "agent:docs-1", "docsy/a", true],
    [ONLY, "agent:ada", "src/a.ts", false],
    // What cotenant itself writes is ruled by claims.
    [ONLY, "agent:docs-1", `${ISSUE}/issue.json`, false],
    [ONLY, "agent:docs-1", `${ISSUE}/comments.jsonl`, false],
    [ONLY, "agent:docs-1", ".cotenant/gates/results/01M7F87SKQ7X3KZ979XRC4S87G.jsonl", false],
    [ONLY, "agent:docs-1", ".cotenant/events/local.jsonl", false],
    [ONLY, "agent:docs-1", `${ISSUE}/run.sh`, true],
    [ONLY, "agent:docs-1", `src/${ISSUE}/issue.json`, true],
    [ONLY, "agent:docs-1", ".cotenant/gates/registry.json", true],
    // A subagent is its agent's; a name that only begins alike is not.
    ["agent:ada never a", "agent:ada", "a", true],
    ["agent:ada never a", "agent:ada.1234abcd", "a", true],
    ["agent:ada never a", "agent:adam", "a", false],
    ["* never a", "human:me", "a/b/c", true],
    ["agent:* never /a", "agent:x", "b/a", false],
    ["agent:* never build/", "agent:x", "src/build/x", true],
    ["agent:* never build/", "agent:x", "src/build", false],
    // A character is one, however many units it takes.
    ["agent:* never d/x?y", "agent:x", "d/x😀y", true],
    ["agent:* never d/x??y", "agent:x", "d/x😀y", false],
    ["agent:* never d/*?", "agent:x", "d/😀", true],
    ["agent:* never d/*??", "agent:x", "d/😀", false],
    ["agent:* never d/*😀?", "agent:x", "d/😀😁😀z", true],
    ["agent:* only d/?", "agent:x", "d/é", false],
  ])("%s: for %s, writing %s is forbidden: %s", (rule, agent, path, isForbidden) => {
    expect(forbids([rule], agent, path)).toBe(isForbidden ? rule : null);
  });

  it("is one of several that must all allow, in whatever order", () => {
    const rules = ["agent:* only src/** docs/**", "agent:docs-* only docs/**", "agent:* never **/secret.md"];
    for (const some of [rules, rules.toReversed()]) {
      expect(forbids(some, "agent:docs-1", "docs/a.md")).toBeNull();
      expect(forbids(some, "agent:docs-1", "src/a.ts")).toBe(rules[1]);
      expect(forbids(some, "agent:docs-1", "docs/x/secret.md")).toBe(rules[2]);
      expect(forbids(some, "agent:x", "lib/a.ts")).toBe(rules[0]);
    }
  });

  it("folds case and composed letters as the repository does", () => {
    expect(forbids(["agent:* never .github/**"], "agent:a", ".GitHub/x", true)).not.toBeNull();
    expect(forbids(["agent:* never Ä/**"], "agent:a", "a\u0308/x", true)).not.toBeNull();
    expect(forbids(["agent:* never \u00e4/**"], "agent:a", "a\u0308/x")).not.toBeNull();
  });

  it("says to several makers what it says to each, and to somebody without a name what it says to everybody", () => {
    const rules = ["agent:docs-* only docs/**", "agent:* never ci/"];
    expect(judge(rules, ["human:me", "agent:docs-1"])?.writing("src/a")).not.toBeNull();
    expect(judge(rules, ["human:me"])).toBeNull();
    expect(judge(rules, [])).toBeNull();
    expect(judge(["* never ci/"], [])?.writing("ci/x")?.text).toBe("* never ci/");
  });

  it("that is committed keeps agents and CI that it binds, and nobody else, from the file that it stands in", () => {
    const at = (agent: string, source: PlacedRule["source"] = "committed") =>
      pathJudge({ rules: [placed("* never ci/", source)], ignoreCase: false }, [agent])?.writing(
        ".cotenant/config.toml",
      ) ?? null;
    expect(at("agent:a")?.text).toBe("* never ci/");
    expect(at("ci:main")?.text).toBe("* never ci/");
    expect(at("human:me")).toBeNull();
    expect(at("admin:me")).toBeNull();
    expect([at("agent:a", "settings"), at("agent:a", "server")]).toEqual([null, null]);
    expect(ruledOut(at("agent:a")!, ".cotenant/config.toml", ["agent:a"])).toContain(
      "the rules that bind them",
    );
  });

  it("says who could lift it, and to whom a write may be left, where there is anybody", () => {
    const instead = (who: string, source: PlacedRule["source"]) =>
      whatInstead(placed(`${who} never ci/`, source));
    const others = "leave it to somebody whom the rule does not bind";
    const said = {
      committed: "have a person commit a change of policy.paths in here",
      settings: "have a person change policy.paths in here",
      server: "only a change of here lifts it",
    };
    for (const [source, lifting] of Object.entries(said) as [PlacedRule["source"], string][]) {
      expect(instead("*", source)).toBe(lifting);
      expect(instead("agent:*", source)).toBe(
        `${others}${source === "server" ? "; else" : ", or"} ${lifting}`,
      );
    }
  });

  it("that is committed leaves people the file that it stands in, whatever it says of them: nobody else could lift it", () => {
    const at = (rule: PlacedRule, ...agents: string[]) => {
      const judged = pathJudge({ rules: [rule], ignoreCase: false }, agents)!;
      expect(judged.anythingIn(".cotenant") === null).toBe(judged.writing(".cotenant/config.toml") === null);
      return judged.writing(".cotenant/config.toml")?.text ?? null;
    };
    for (const text of ["* only docs/**", "* never .cotenant/**"]) {
      for (const who of [["human:me"], ["admin:me"], []])
        expect(at(placed(text, "committed"), ...who)).toBeNull();
      for (const who of ["agent:a", "ci:main"])
        expect(at(placed(text, "committed"), "human:me", who)).toBe(text);
      // One that stands elsewhere is lifted there.
      expect(at(placed(text), "human:me")).toBe(text);
    }
    expect(at(placed("human:* only docs/**", "committed"), "human:me")).toBeNull();
    expect(judge(["* only docs/**"], ["human:me"])?.anythingIn(".cotenant")).not.toBeNull();
  });

  it.each([
    ["agent:docs-* only docs/**", ".", false],
    ["agent:docs-* only docs/**", "docs", false],
    ["agent:docs-* only docs/**", "docs/deep/er", false],
    ["agent:docs-* only docs/**", "src", true],
    ["agent:docs-* only *.md", "src", false],
    ["agent:docs-* only **/docs/x", "src/a", false],
    ["agent:* never .github/**", ".", false],
    ["agent:* never .github/**", ".github", true],
    ["agent:* never .github/**", ".github/workflows", true],
    ["agent:* never a/b/c", "a", false],
    ["agent:* never docs/*.md", "docs", false],
    ["agent:* never build/", "build", true],
    ["agent:* never **", ".", true],
  ])("%s: nothing in %s may be written: %s", (rule, directory, isForbidden) => {
    expect(judge([rule], ["agent:docs-1"])?.anythingIn(directory) != null).toBe(isForbidden);
  });

  it.each([
    ["", "no agent id"],
    ["agent:*", "where never or only belongs"],
    ["agent:* nevr a", '"nevr"'],
    ["agent:* allow a", '"allow"'],
    ["agent:* never", "names no files"],
    ["bob never a", '"bob"'],
    ["agent:a*b never a", '"agent:a*b"'],
    // They would bind nobody.
    ["agent: never a", '"agent:"'],
    ["agent:-a never a", '"agent:-a"'],
    [`agent:${"a".repeat(101)} never a`, "no agent id"],
    ["agent:* never [ab].txt", "only *, ** and ?"],
    ["agent:* never {a,b}", "only *, ** and ?"],
    ["agent:* never !a", "only *, ** and ?"],
    ["agent:* never a\\b", "only *, ** and ?"],
    ["agent:* never ../a", "no path from the repository's root"],
    ["agent:* never ./a", "no path from the repository's root"],
    ["agent:* never a//b", "no path from the repository's root"],
    ["agent:* never /", "no path from the repository's root"],
    ["agent:* never a\u0007", "control character"],
    [`agent:* never ${"a".repeat(500)}`, "longer than 500"],
  ])("%j is none: %s", (text, why) => {
    expect(parsePathRule(text)).toEqual({ wrong: expect.stringContaining(why) });
  });
});

describe("rules of paths, whatever they are", () => {
  const name = fc.constantFrom("a", "b", "ab", "*", "?", "a*", "**");
  const pattern = fc
    .tuple(fc.constantFrom("", "/"), fc.array(name, { minLength: 1, maxLength: 4 }), fc.constantFrom("", "/"))
    .map(([before, names, after]) => `${before}${names.join("/")}${after}`);
  const rule = fc
    .tuple(
      fc.constantFrom("*", "agent:*", "agent:a", "agent:a*", "human:*"),
      fc.constantFrom("never", "only"),
      fc.array(pattern, { minLength: 1, maxLength: 3 }),
    )
    .map(([who, verb, globs]) => `${who} ${verb} ${globs.join(" ")}`);
  const names = fc.array(fc.constantFrom("a", "b", "ab", "c"), { minLength: 1, maxLength: 5 });
  const agents = fc.subarray(["agent:a", "agent:ab", "human:a"]);
  const options = { numRuns: propertyRuns(), seed: propertySeed() };

  it("allow no more when others are added", () => {
    fc.assert(
      fc.property(fc.array(rule), fc.array(rule), agents, names, (some, more, who, path) => {
        const text = path.join("/");
        const isForbidden = (rules: readonly string[]) => judge(rules, who)?.writing(text) != null;
        if (isForbidden(some)) {
          expect(isForbidden([...some, ...more])).toBe(true);
          expect(isForbidden([...more, ...some])).toBe(true);
        }
      }),
      options,
    );
  });

  it("say of a directory that nothing in it may be written only where that is so", () => {
    fc.assert(
      fc.property(fc.array(rule), agents, names, names, (rules, who, above, below) => {
        const judged = judge(rules, who);
        if (judged?.anythingIn(above.join("/")) != null || judged?.anythingIn(".") != null)
          expect(judged.writing([...above, ...below].join("/"))).not.toBeNull();
      }),
      options,
    );
  });

  it("fit what is in a directory only where the pattern may", () => {
    fc.assert(
      fc.property(pattern, names, names, (one, above, below) => {
        const [directory, path] = [above.join("/"), [...above, ...below].join("/")];
        if (fitsPattern(one, path)) expect(mayFitIn(one, directory)).toBe(true);
        if (fitsAllIn(one, directory)) expect(fitsPattern(one, path)).toBe(true);
      }),
      options,
    );
  });
});
