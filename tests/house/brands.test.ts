import { describe, expect, it } from "vitest";
import { castsTo, filesBelow, tokensOf } from "./source";

/** The parsers, and for what a parser has seen already `trusted`. */
const MAKERS = ["ids", "keys", "facts", "lease"].map((name) => `src/kernel/${name}.ts`);

const files = [...filesBelow("src"), ...filesBelow("testing")].filter(({ path }) => path.endsWith(".ts"));
const brands = new Set(
  files
    .filter(({ path }) => MAKERS.includes(path))
    .flatMap(({ text }) => [
      ...text.matchAll(/^export type (\w+) = (?:Branded<|\w+ & (?:Brand<|\{ readonly \w+: unique)|Ulid;)/gm),
    ])
    .map(([, name]) => name!),
);

const castsIn = (text: string) => castsTo(brands, tokensOf(text)).map(({ name }) => name);

describe("brands", () => {
  it("are found where they are made", () => {
    expect([...brands].sort()).toEqual([
      "AgentId",
      "FactName",
      "FencingToken",
      "LeaseId",
      "LeaseKey",
      "RepoPath",
      "SessionId",
      "Slot",
      "Ulid",
      "WorktreeId",
    ]);
  });

  it("are made there only", () => {
    const elsewhere = files
      .filter(({ path }) => !MAKERS.includes(path))
      .flatMap(({ path, text }) =>
        castsTo(brands, tokensOf(text)).map(({ name, line }) => `${path}:${line}: as ${name}`),
      );
    expect(elsewhere).toEqual([]);
  });

  it("would be caught in any cast, and nowhere else", () => {
    expect(castsIn("const id = text as Ulid;")).toEqual(["Ulid"]);
    expect(castsIn("f((texts as readonly AgentId[])[0], x)")).toEqual(["AgentId"]);
    expect(castsIn("(wire as { key: LeaseKey; at: number }).key")).toEqual(["LeaseKey"]);
    expect(castsIn("found.get(id as string | null, key as unknown as LeaseKey)")).toEqual(["LeaseKey"]);
    expect(castsIn('import { parse as Ulid_ } from "x"; // as Ulid')).toEqual([]);
    expect(castsIn("const a = (b as string) === c; const d: Ulid = e;")).toEqual([]);
  });
});
