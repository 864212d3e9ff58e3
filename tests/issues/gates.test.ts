import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { choosePreset, type Repo } from "../../src/features/gates/presets";
import { decodeRegistry, type Registry, registryWith } from "../../src/features/gates/registry";
import {
  encodeResult,
  foldResults,
  type GateResult,
  type GateResults,
  gateStatus,
  newResult,
  pendingAmong,
  type ResultStatus,
} from "../../src/features/gates/results";
import { gateTrust } from "../../src/features/gates/trust";
import type { Ulid } from "../../src/kernel/ids";
import { nodePlatform } from "../../src/platform/node/node";

const platform = nodePlatform();
const NONE: GateResults = { standing: new Map(), broken: 0 };

function result(gate: string, status: ResultStatus, seen: GateResults = NONE): GateResult {
  return newResult(platform, { gate, status, kind: "manual", by: "human:a" }, seen);
}
const fold = (...results: GateResult[]) => foldResults(results.map(encodeResult).join(""));

describe("the results of gates", () => {
  it("count until another one takes their place", () => {
    const failed = result("tests", "failed");
    const passed = result("tests", "passed", fold(failed));
    expect(gateStatus(fold(), "tests")).toBe("pending");
    expect(gateStatus(fold(failed), "tests")).toBe("failed");
    expect(gateStatus(fold(failed, passed), "tests")).toBe("passed");
    expect(gateStatus(fold(failed, passed, result("tests", "reset", fold(failed, passed))), "tests")).toBe(
      "pending",
    );
  });

  it("of two branches that did not see each other must all be good", () => {
    const passed = result("tests", "passed");
    const failed = result("tests", "failed");
    const reset = result("tests", "reset");
    expect(gateStatus(fold(passed, failed), "tests")).toBe("failed");
    expect(gateStatus(fold(passed, reset), "tests")).toBe("pending");
    expect(gateStatus(fold(passed, result("tests", "passed")), "tests")).toBe("passed");
    const merged = fold(passed, failed);
    expect(gateStatus(fold(passed, failed, result("tests", "passed", merged)), "tests")).toBe("passed");
  });

  it("are the same in any order, and however often each line is there", () => {
    const a = result("tests", "failed");
    const b = result("review", "passed");
    const c = result("tests", "passed", fold(a));
    const orders = [
      [a, b, c],
      [c, b, a],
      [b, c, a, c, b],
    ];
    for (const order of orders) expect(fold(...order)).toEqual(fold(a, b, c));
  });

  it("leave out lines that are none, and say how many", () => {
    const text = `${encodeResult(result("tests", "passed"))}{"half\n[]\n{"schema_version":2}\n\n<<<<<<< ours\n`;
    const results = foldResults(text);
    expect(gateStatus(results, "tests")).toBe("passed");
    expect(results.broken).toBe(4);
    expect(gateStatus(foldResults('{"__proto__":1}'), "__proto__")).toBe("pending");
  });

  it("say what is still to be passed, each gate once", () => {
    const results = fold(result("tests", "passed"), result("review", "failed"));
    expect(pendingAmong(["tests", "review", "gone", "gone"], results)).toEqual(["review", "gone"]);
  });

  it.each(["x", '"\\', "\u{1f600}", "\n"])(
    "keep the end of a long output, as the log takes it: %j",
    (text) => {
      const output = `${text.repeat(60_000)}the end`;
      const run = {
        command: "c",
        exit_status: 1,
        signal: null,
        timed_out: false,
        duration_ms: 1,
        output,
        output_bytes: output.length,
        output_cut: false,
      };
      const line = encodeResult({ ...result("tests", "failed"), run });
      expect(JSON.stringify(line).length).toBeLessThan(10_010);
      const kept = foldResults(line).standing.get("tests")![0]!.run!;
      expect(kept).toMatchObject({ output_cut: true, exit_status: 1 });
      expect(kept.output).toMatch(/the end$/);
      expect(kept.output.length).toBeGreaterThan(1_000);
      expect(kept.output).not.toMatch(/^[\uDC00-\uDFFF]/);
    },
  );
});

describe("the registry", () => {
  const manual = { key: "review", title: "Read", kind: "manual" };
  const tests = { key: "tests", title: "T", kind: "automated", command: "npm test" };
  const text = (...gates: unknown[]) => JSON.stringify({ schema_version: 1, gates });
  const read = (source: string) => {
    const reading = decodeRegistry(source);
    if (!("registry" in reading)) throw new Error(reading.broken);
    return reading.registry;
  };
  const keys = ({ gates }: Registry) => [...gates.keys()];

  it("fills in what a command needs", () => {
    expect(read(text(tests, manual)).gates.get("tests")).toMatchObject({ timeout_secs: 600, cwd: "." });
    expect(read(text(manual)).gates.get("review")).toMatchObject({ command: null, timeout_secs: null });
  });

  it.each([
    ["", "not JSON"],
    ["{", "not JSON"],
    ["<<<<<<< ours\n{}\n", "merge conflicts"],
    ["[]", "not an object"],
    ["{}", "schema_version"],
    ['{"schema_version":2,"gates":[]}', "newer"],
    ['{"schema_version":1}', "no list"],
    [JSON.stringify({ schema_version: 1, gates: Array(501).fill(manual) }), "more than 500"],
  ])("is refused as a whole: %s", (source, why) => {
    expect(decodeRegistry(source)).toMatchObject({ broken: expect.stringContaining(why) });
  });

  it.each([
    [{ ...tests, key: "__proto__" }, "no key"],
    [{ ...tests, key: "a/../b" }, "no key"],
    [{ ...tests, kind: "magic" }, "neither manual nor automated"],
    [{ ...tests, command: "" }, "no command"],
    [{ ...tests, command: "npm\ntest" }, "control characters"],
    [{ ...tests, command: "ls \u{202e}" }, "control characters"],
    [{ ...tests, command: "x".repeat(5_000) }, "more than 4096"],
    [{ ...tests, timeout_secs: 0 }, "timeout_secs"],
    [{ ...tests, timeout_secs: "soon" }, "timeout_secs"],
    [{ ...tests, cwd: "../other" }, "cwd"],
    [{ ...tests, cwd: "/etc" }, "cwd"],
    [{ ...manual, command: "sneaky" }, "manual, and names a command"],
    ["tests", "not an object"],
  ])("leaves out a gate that cannot be used, and says why: %j", (entry, why) => {
    const registry = read(text(entry, { ...manual, key: "other" }));
    expect(keys(registry)).toEqual(["other"]);
    expect(registry.problems.map(({ message }) => message).join()).toContain(why);
  });

  it("counts neither of two gates with one key", () => {
    const registry = read(text(tests, { ...tests, command: "curl evil" }, tests));
    expect(keys(registry)).toEqual([]);
    expect(registry.problems[0]).toMatchObject({ key: "tests", message: expect.stringContaining("twice") });
  });

  it("names fields that it does not know, and keeps them", () => {
    const registry = read(JSON.stringify({ schema_version: 1, gates: [{ ...tests, owner: "x" }], more: 1 }));
    expect(registry.problems.map(({ message }) => message)).toEqual([
      'there is no field "more"',
      '"tests" has a field "owner", which is not known',
    ]);
    const { gates } = read(text(manual));
    const after = JSON.parse(registryWith(registry, "review", gates.get("review")!));
    expect(after).toMatchObject({ more: 1, gates: [{ key: "review" }, { key: "tests", owner: "x" }] });
  });

  it("is trusted by command and directory, not by title", () => {
    const gate = read(text(tests)).gates.get("tests")!;
    const { digest } = platform;
    const trusted = gateTrust(digest, gate);
    expect(gateTrust(digest, { ...gate, title: "other", timeout_secs: 5 })).toEqual(trusted);
    expect(gateTrust(digest, { ...gate, command: "npm test " })).not.toEqual(trusted);
    expect(gateTrust(digest, { ...gate, cwd: "sub" })).not.toEqual(trusted);
  });
});

describe("the formats", () => {
  /** Compares with the file in testing/corpora/formats; TEST_GOLDEN=write makes it anew. */
  const golden = (name: string, actual: string) => {
    const file = join(import.meta.dirname, "../../testing/corpora", "formats", name);
    if (process.env["TEST_GOLDEN"] === "write") writeFileSync(file, actual);
    const kept = readFileSync(file, "utf8");
    expect(actual, `${name} has changed: a new format needs a new schema version`).toBe(kept);
    return kept;
  };
  const run = {
    command: "npm test",
    exit_status: 1,
    signal: null,
    timed_out: false,
    duration_ms: 195,
    output: "1 failed\n",
    output_bytes: 9,
    output_cut: false,
  };
  const manual: GateResult = {
    schema_version: 1,
    id: "01M7FW5CJ22Z82E45WQDQKW6EG" as Ulid,
    gate: "review",
    status: "passed",
    kind: "manual",
    at: "2026-11-15T15:10:41.218Z",
    by: "human:ada",
    reason: "read it",
    replaces: ["01M7FW5B722YY484AHNGHMBTPX" as Ulid],
    commit: null,
    tree: null,
    dirty: null,
    run: null,
  };

  it("of results are what they were, and are read back whole", () => {
    const automated: GateResult = {
      ...manual,
      id: "01M7FW5D44CGVH32RXTHJ7KDFB" as Ulid,
      gate: "tests",
      status: "failed",
      kind: "automated",
      replaces: [],
      commit: "8b739ecf99e8dd9e1b6c9cf3f7e4f0c296ac5192",
      dirty: true,
      run,
    };
    const kept = golden("gate-results.jsonl", encodeResult(manual) + encodeResult(automated));
    const { standing, broken } = foldResults(kept);
    expect([...standing.values()].flat()).toEqual([manual, automated]);
    expect(broken).toBe(0);
  });

  it("of the registry is what it was, and is read back whole", () => {
    const gate = {
      key: "tests",
      title: "The tests pass",
      kind: "automated",
      command: "npm test",
      timeout_secs: 600,
      cwd: ".",
      defined_at: "2026-11-15T15:10:39.501Z",
      defined_by: "human:ada",
    } as const;
    const empty: Registry = { gates: new Map(), problems: [], document: {} };
    const kept = golden("gate-registry.json", registryWith(empty, "tests", gate));
    expect(decodeRegistry(kept)).toMatchObject({
      registry: { problems: [], gates: new Map([["tests", gate]]) },
    });
  });
});

describe("presets", () => {
  const nothing: Repo = { scripts: null, has: new Set(), makeTargets: new Set() };
  const npm = (scripts: Record<string, string>, ...has: string[]): Repo => ({
    ...nothing,
    scripts,
    has: new Set(has),
  });

  it.each([
    ["tests", npm({ test: "vitest" }), "npm test"],
    ["tests", npm({ test: "vitest" }, "pnpm-lock.yaml"), "pnpm test"],
    ["tests", npm({ test: "vitest" }, "bun.lock"), "bun run test"],
    ["lint", npm({ lint: "eslint" }, "yarn.lock"), "yarn run lint"],
    ["typecheck", npm({}, "tsconfig.json"), "npx --no-install tsc --noEmit"],
    ["tests", { ...nothing, makeTargets: new Set(["test"]) }, "make test"],
    ["tests", { ...nothing, has: new Set(["Cargo.toml"]) }, "cargo test"],
    ["build", { ...nothing, has: new Set(["go.mod"]) }, "go build ./..."],
    ["review", nothing, null],
  ] as const)("%s", (name, repo, command) => {
    expect(choosePreset(name, repo)).toMatchObject({ command });
  });

  it("make nothing up", () => {
    expect(choosePreset("tests", nothing)).toBeNull();
    const none = npm({ test: 'echo "Error: no test specified" && exit 1' });
    expect(choosePreset("tests", none)).toBeNull();
  });
});
