import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { branchRef, refuseProtected } from "../../src/features/publish/branch-rules";
import { parseChanges } from "../../src/features/publish/change-list";
import type { Wanted } from "../../src/features/publish/draft";
import { cleanMessage, withTrailers } from "../../src/features/publish/message";
import { formerNames } from "../../src/features/publish/patch-names";
import { pathObjections } from "../../src/features/publish/path-rules";
import { toByteText } from "../../src/git/byte-text";
import { fitsPattern } from "../../src/kernel/path-patterns";
import { Scene } from "../git/scene";

const bytes = (text: string) => new TextEncoder().encode(text);
const OID = "ab".repeat(20);

describe("a pattern of paths", () => {
  it.each([
    ["*.pem", "deep/er/key.pem", true],
    ["*.pem", "key.pem.txt", false],
    ["secrets", "a/secrets/b", true],
    ["secrets/", "a/secrets/b", true],
    ["secrets/", "a/secrets", false],
    ["/top.txt", "top.txt", true],
    ["/top.txt", "a/top.txt", false],
    ["infra/prod", "infra/prod/x/y", true],
    ["infra/prod", "a/infra/prod", false],
    ["infra/*/keys", "infra/eu/keys/a", true],
    ["infra/*/keys", "infra/eu/x/keys", false],
    ["infra/**/keys", "infra/eu/x/keys", true],
    ["infra/**/keys", "infra/keys", true],
    ["**/keys", "a/b/keys", true],
    ["?.txt", "a.txt", true],
    ["?.txt", "ab.txt", false],
    ["", "a", false],
    ["/", "a", false],
  ])("%s fits %s: %s", (pattern, path, fits) => {
    expect(fitsPattern(pattern, path)).toBe(fits);
  });

  it("that is made to take for ever takes none", () => {
    expect(fitsPattern(`${"a*".repeat(40)}b`, "a".repeat(250))).toBe(false);
    expect(fitsPattern(`${"**/a/".repeat(60)}b`, "a/".repeat(900).slice(0, -1))).toBe(false);
  });
});

describe("rules about paths", () => {
  const rules = {
    forbiddenPaths: ["infra/prod/"],
    allowSecretsIn: { patterns: [".env.example"], untrusted: null },
    maxPaths: 3,
    maxFileBytes: 10,
    ignoreCase: false,
    publisher: "agent:a",
    judge: null,
  };
  const file = (content: string, mode = "100644"): Wanted => ({ mode, content: bytes(content), oid: OID });
  const codes = (
    path: string,
    wanted: Wanted | null,
    before: [string, { mode: string; oid: string }][] = [],
  ) => pathObjections(new Map([[path, wanted]]), new Map(before), rules).map(({ code }) => code);

  it.each<[string, Wanted | null, string[]]>([
    ["src/a.ts", file("x"), []],
    [".env", file("x"), ["E_SECRET_FOUND"]],
    ["deep/.ENV.production", file("x"), ["E_SECRET_FOUND"]],
    [".env", null, []],
    ["deep/.env.example", file("x"), []],
    ["infra/prod/x", file("x"), ["E_POLICY"]],
    ["infra/prod/x", null, ["E_POLICY"]],
    ["big", file("x".repeat(11)), ["E_LIMIT"]],
    ["link", file("../up", "120000"), ["E_PATH_ESCAPE"]],
    ["a/link", file("../up", "120000"), []],
    ["a/link", file("/etc", "120000"), ["E_PATH_ESCAPE"]],
    ["a/link", file("../.GIT/x", "120000"), ["E_PATH_ESCAPE"]],
    [".gitignore", file("x", "120000"), ["E_POLICY"]],
    ["sub", { mode: "160000", content: null, oid: OID }, ["E_POLICY"]],
    ["odd", file("x", "100664"), ["E_POLICY"]],
    [".gitmodules", file("x"), ["E_POLICY"]],
    [".cotenant/worktree.json", file("x"), ["E_POLICY"]],
  ])("%s", (path, wanted, expected) => {
    expect(codes(path, wanted)).toEqual(expected);
  });

  it("do not let a submodule be replaced or deleted", () => {
    expect(codes("sub", null, [["sub", { mode: "160000", oid: OID }]])).toEqual(["E_POLICY"]);
  });

  it("have a limit of their number", () => {
    const draft = new Map(["a", "b", "c", "d"].map((path) => [path, file("x")]));
    expect(pathObjections(draft, new Map(), rules).map(({ code }) => code)).toEqual(["E_LIMIT"]);
  });
});

describe("the name of a branch", () => {
  it.each(["topic/x", "refs/heads/topic/x", "a"])("%s", (typed) => {
    expect(branchRef(typed)).toBe(`refs/heads/${typed.replace("refs/heads/", "")}`);
  });

  it.each([
    "",
    "-x",
    "HEAD",
    "@",
    "refs/heads/@",
    "a..b",
    "refs/tags/x",
    "refs/x",
    "a b",
    "a.lock",
    "a@{1}",
    "x\u0007",
  ])("%j is none", (typed) => {
    expect(() => branchRef(typed)).toThrow(/not the name of a branch/);
  });

  it("that is protected is refused in any case of letters", () => {
    for (const name of ["main", "MASTER", "release/1"])
      expect(() => refuseProtected(`refs/heads/${name}`, ["Release/1"])).toThrow(/protected/);
    expect(() => refuseProtected("refs/heads/maintenance", ["release/1"])).not.toThrow();
  });
});

describe("a list of changes", () => {
  const parse = (...changes: unknown[]) => parseChanges(JSON.stringify({ changes }), "sha1");

  it("has contents as text and as base64", () => {
    const [one, two] = parse(
      { op: "put", path: "a", content: "\u00fc" },
      { op: "put", path: "b", content: "AAH/\n", encoding: "base64", mode: "100755", base_blob: null },
    );
    expect(one).toMatchObject({ content: bytes("\u00fc"), mode: null });
    expect(two).toMatchObject({ content: new Uint8Array([0, 1, 255]), mode: "100755", baseBlob: null });
  });

  it.each([
    ["no JSON", "{"],
    ["a list without a name", "[]"],
    ["something besides", '{"changes":[],"branch":"x"}'],
    ["an unknown operation", '{"changes":[{"op":"chmod","path":"a"}]}'],
    ["an operation of the prototype", '{"changes":[{"op":"constructor"}]}'],
    ["a field too many", '{"changes":[{"op":"delete","path":"a","content":"x"}]}'],
    ["a field of the prototype", '{"changes":[{"op":"delete","path":"a","__proto__":{"x":1}}]}'],
    ["a field too few", '{"changes":[{"op":"put","path":"a"}]}'],
    ["a path that is none", '{"changes":[{"op":"delete","path":7}]}'],
    ["another encoding", '{"changes":[{"op":"put","path":"a","content":"","encoding":"hex"}]}'],
    ["no base64", '{"changes":[{"op":"put","path":"a","content":"*","encoding":"base64"}]}'],
    ["another mode", '{"changes":[{"op":"put","path":"a","content":"","mode":"160000"}]}'],
    ["half an object's id", '{"changes":[{"op":"put","path":"a","content":"","base_blob":"abc"}]}'],
  ])("with %s is not understood", (_, text) => {
    expect(() => parseChanges(text, "sha1")).toThrow(/list of changes is not understood/);
  });
});

describe("names in a patch", () => {
  it("are found where Git writes them, quoted or not", () => {
    const scene = new Scene();
    for (const name of ["plain", "to move", 'quo"te', "t\tab", "\u00fc", "mode", "gone", "bin"])
      scene.write(name, `${name}\n`.repeat(9));
    scene.commit();
    scene.git("mv", "to move", "moved");
    for (const name of ["plain", 'quo"te', "t\tab", "\u00fc"]) scene.write(name, "changed\n");
    scene.write("bin", "\0\0");
    scene.git("rm", "--quiet", "gone");
    scene.git("update-index", "--chmod=+x", "mode");
    scene.git("add", "--all", ".", ":!mode");
    const patch = execFileSync("git", ["diff", "--cached", "-M", "--binary"], { cwd: scene.root });
    const names = formerNames(patch);
    for (const name of ["plain", "to move", 'quo"te', "t\tab", "\u00fc", "mode", "gone", "bin"])
      expect(names, name).toContain(toByteText(name));
  });
});

describe("a message", () => {
  it("has no trailers but those that we write", () => {
    expect(cleanMessage("\n\nSubject  \r\n\r\nBody\nCotenant-Agent: human:boss\n\n")).toBe("Subject\n\nBody");
    expect(() => cleanMessage(" \n")).toThrow(/needs a message/);
    expect(() => cleanMessage("Cotenant-Agent: x")).toThrow(/needs a message/);
    expect(() => cleanMessage("a\0b")).toThrow(/NUL/);
    expect(() => cleanMessage("x".repeat(70_000))).toThrow(/longer/);
  });

  it("joins trailers that are there already", () => {
    const trailers = { agentId: "agent:a", worktreeId: "wt:00000001", issues: [] };
    const ours = "Cotenant-Agent: agent:a\nCotenant-Worktree: wt:00000001\n";
    expect(withTrailers("Subject", [], trailers)).toBe(`Subject\n\n${ours}`);
    expect(withTrailers("Subject\n\nSigned-off-by: A <a@x>", [], trailers)).toBe(
      `Subject\n\nSigned-off-by: A <a@x>\n${ours}`,
    );
  });
});
