import { describe, expect, it } from "vitest";
import { placedRules } from "../../src/config/path-rules";
import type { Objection } from "../../src/features/hooks/commit-rules";
import { enforced, RuleJudge, ruleObjections, withMore } from "../../src/features/hooks/path-rules";
import type { PushedCommit } from "../../src/features/hooks/push-rules";
import { parseTrailers } from "../../src/features/hooks/trailers";
import { pathJudge } from "../../src/kernel/path-rules";

const NEVER = "agent:* never ci/";
const ONLY = "agent:docs-* only docs/**";
const rules = {
  rules: placedRules([NEVER, ONLY], { place: "config.toml:1", source: "committed" }),
  ignoreCase: false,
};

describe("a commit that is about to be made", () => {
  it("is judged by who makes it, path by path, with the rule and where it stands", () => {
    const objections = (agentId: string | null, ...paths: string[]) =>
      ruleObjections(
        rules,
        agentId === null ? null : { agentId },
        paths.map((path) => ({ path })),
      ).map(({ code, message, owner }) => [code, message, owner]);
    expect(objections("agent:a", "src/a", "ci/x")).toEqual([
      ["E_PATH_RULE", `ci/x: agent:a may not write it: "${NEVER}" (config.toml:1)`, null],
    ]);
    expect(objections("agent:docs-1", "docs/a", "src/a").map(([, message]) => message)).toEqual([
      `src/a: agent:docs-1 may not write it: "${ONLY}" (config.toml:1)`,
    ]);
    expect(objections("human:me", "ci/x")).toEqual([]);
    expect(objections(null, "ci/x", ".cotenant/config.toml")).toEqual([]);
  });

  it("goes against a rule whatever worktree.enforce_leases says of leases", () => {
    const about = { path: "a", message: "", hint: "", owner: null, leaseId: null };
    const rule: Objection = { ...about, code: "E_PATH_RULE" };
    const lease: Objection = { ...about, code: "E_LOCK_CONFLICT" };
    expect(enforced("strict", [lease, rule])).toEqual({ refused: [lease, rule], warned: [] });
    expect(enforced("warn", [lease, rule])).toEqual({ refused: [rule], warned: [lease] });
    expect(enforced("off", [lease, rule])).toEqual({ refused: [rule], warned: [] });
  });
});

describe("a commit that exists", () => {
  const commit = (...agents: string[]) => {
    const message = ["x", "", ...agents.map((agent) => `Cotenant-Agent: ${agent}`)].join("\n");
    return {
      ...{ oid: "0123456789abcdef", parents: ["f"], message, trailers: parseTrailers(message), edits: [] },
      changes: [{ path: "ci/x" }],
    } as unknown as PushedCommit;
  };
  const isRefused = (pusher: string | null, ...agents: string[]) =>
    new RuleJudge(rules, { pusher, hasHooks: true }).objections(commit(...agents)).length > 0;

  it("is judged by all whom it names, else by who pushes", () => {
    expect(isRefused(null, "agent:a")).toBe(true);
    expect(isRefused("human:me", "agent:a")).toBe(true);
    expect(isRefused("agent:a", "human:me")).toBe(false);
    expect(isRefused(null, "human:me", "agent:a")).toBe(true);
    expect(isRefused(null, "agent:a", "human:me")).toBe(true);
    expect(isRefused("agent:a")).toBe(true);
    expect(isRefused("human:me")).toBe(false);
    expect(isRefused(null)).toBe(false);
  });

  it("is judged by the rules that it replaces as well, and no other commit is", () => {
    const [replaced] = placedRules(["ci:* never ci/"], { place: "f:config.toml:1", source: "committed" });
    const lifting = commit("ci:main");
    const judge = new RuleJudge(
      rules,
      { pusher: null, hasHooks: true },
      new Map([[lifting.oid, [replaced!]]]),
    );
    expect(judge.objections(lifting)).toMatchObject([{ path: "ci/x", code: "E_PATH_RULE" }]);
    expect(judge.objections({ ...lifting, oid: "other" })).toEqual([]);
  });

  it("keeps the file of a committed rule also where somebody's own settings say the same", () => {
    const own = placedRules([NEVER], { place: "own", source: "settings" });
    const both = withMore({ rules: own, ignoreCase: false }, rules.rules);
    expect(pathJudge(both, ["agent:a"])?.writing(".cotenant/config.toml")?.place).toBe("config.toml:1");
    expect(withMore(rules, rules.rules).rules).toEqual(rules.rules);
  });
});
