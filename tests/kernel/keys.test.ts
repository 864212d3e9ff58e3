import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  directoriesAbove,
  dirKey,
  fileKey,
  isInside,
  isPathKey,
  issueKey,
  KEY_KINDS,
  kindOf,
  nameOf,
  parseKey,
  parseRepoPath,
  pathOf,
  type RepoPath,
  refKey,
  resourceKey,
  scopeKey,
  utf8Length,
  worktreeKey,
} from "../../src/kernel/keys";
import { isRefusal, type Refusal } from "../../src/kernel/refusal";
import { corpus } from "./corpus";
import { propertyRuns } from "./property";

/** Half of a surrogate pair. */
const LONE = /\p{Cs}/u;

const code = (value: unknown) => (isRefusal(value) ? value.code : value);

describe("corpora", () => {
  test.each(corpus("keys-valid.txt"))("%j is a key as it stands", (text) => {
    expect(parseKey(text!)).toBe(text);
  });

  test.each(corpus("keys-respelled.txt"))("%j is %j", (text, canonical) => {
    expect(parseKey(text!)).toBe(canonical);
    expect(parseKey(canonical!)).toBe(canonical);
  });

  test.each(corpus("keys-escaping.txt"))("%j leads where no key may", (text) => {
    expect(code(parseKey(text!))).toBe("E_PATH_ESCAPE");
  });

  test.each(corpus("keys-malformed.txt"))("%j is no key", (text) => {
    expect(code(parseKey(text!))).toBe("E_USAGE");
  });

  test("agree with git about refs", () => {
    const refs = [...corpus("keys-valid.txt"), ...corpus("keys-malformed.txt")]
      .map(([text]) => text!)
      .filter((text) => text.startsWith("ref:refs/") && !LONE.test(text));
    expect(refs.length).toBeGreaterThan(20);
    for (const text of refs) {
      const name = text.slice("ref:".length);
      // `refs/x` is a fine name to Git, but no branch, tag or ref of ours.
      const accepted = name.split("/").length > 2 && git("check-ref-format", name);
      expect([text, !isRefusal(parseKey(text))]).toEqual([text, accepted]);
    }
  });
});

function git(...args: string[]): boolean {
  try {
    execFileSync("git", args, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

describe("limits", () => {
  const long = (bytes: number) => `${"a".repeat(250)}/`.repeat(20).slice(0, bytes - 1) + "b";

  test("a path has up to 2,048 bytes, a name in it up to 255", () => {
    expect(code(fileKey(long(2048)))).toBe(`file:${long(2048)}`);
    expect(code(fileKey(long(2049)))).toBe("E_LIMIT");
    expect(code(fileKey("a".repeat(255)))).toBe(`file:${"a".repeat(255)}`);
    expect(code(fileKey("a".repeat(256)))).toBe("E_LIMIT");
    expect(code(fileKey("é".repeat(127)))).toBe(`file:${"é".repeat(127)}`);
    expect(code(fileKey("é".repeat(128)))).toBe("E_LIMIT");
  });

  test("a resource name has up to 200 characters, whatever they take in memory", () => {
    expect(code(resourceKey("💾".repeat(200)))).toBe(`resource:${"💾".repeat(200)}`);
    expect(code(resourceKey("a".repeat(201)))).toBe("E_USAGE");
  });

  test("a ref has up to 1,024 bytes, a scope up to 64", () => {
    const ref = `refs/heads/${"a".repeat(1013)}`;
    expect(code(refKey(ref))).toBe(`ref:${ref}`);
    expect(code(refKey(`${ref}a`))).toBe("E_USAGE");
    expect(code(scopeKey("a".repeat(64)))).toBe(`scope:${"a".repeat(64)}`);
    expect(code(scopeKey("a".repeat(65)))).toBe("E_USAGE");
  });

  test("slashes without number take no time", () => {
    expect(code(fileKey(`a${"/".repeat(1_000_000)}`))).toBe("file:a");
    expect(code(fileKey(`a${"/".repeat(1_000_000)}b`))).toBe("E_PATH_ESCAPE");
  });

  test("a refusal quotes hostile text without its control characters, and not at any length", () => {
    const refusal = fileKey(`\u001b[31m${"x".repeat(5000)}`) as Refusal;
    expect(refusal.message).not.toContain("\u001b");
    expect(refusal.message.length).toBeLessThan(300);
  });
});

describe("parts of a key", () => {
  test("kind and name", () => {
    for (const [text] of corpus("keys-valid.txt")) {
      const key = parseKey(text!);
      if (isRefusal(key)) throw new Error(key.message);
      expect(`${kindOf(key)}:${nameOf(key)}`).toBe(text);
      expect(KEY_KINDS).toContain(kindOf(key));
      expect(isPathKey(key)).toBe(["file", "dir"].includes(kindOf(key)));
      if (isPathKey(key)) expect(pathOf(key)).toBe(nameOf(key));
    }
  });

  test("each kind has its own parser, which agrees with the general one", () => {
    expect(issueKey("01arz3ndektsv4rrffq69g5fav")).toBe("issue:01ARZ3NDEKTSV4RRFFQ69G5FAV");
    expect(worktreeKey("wt:1a2b3c4d")).toBe("worktree:wt:1a2b3c4d");
    expect(dirKey("a/")).toBe("dir:a");
  });

  test("directories above a path, outermost first", () => {
    expect(directoriesAbove("a/b/c" as RepoPath)).toEqual([".", "a", "a/b"]);
    expect(directoriesAbove("a" as RepoPath)).toEqual(["."]);
    expect(directoriesAbove("." as RepoPath)).toEqual([]);
  });

  test.each([
    ["a/b", "a", true],
    ["a/b/c", "a", true],
    ["a", ".", true],
    ["a", "a", false],
    [".", ".", false],
    [".", "a", false],
    ["ab", "a", false],
    ["a", "a/b", false],
    ["a-b/c", "a", false],
  ])("%s inside %s: %s", (inner, outer, answer) => {
    expect(isInside(inner as RepoPath, outer as RepoPath)).toBe(answer);
  });
});

describe("whatever the text", () => {
  const piece = fc.constantFrom(
    "/", "//", ".", "..", "./", "../", "a", "é", "e\u0301", ".git", "git~1", "\\", ":", " ", "\u0000", "\u200c", "~", "\ud800", "💾", "@{", ".lock", "refs/", "wt:", "A",
  ); // biome-ignore format: a list of ingredients
  const text = fc
    .tuple(
      fc.constantFrom(...KEY_KINDS.map((kind) => `${kind}:`), ""),
      fc.oneof(
        fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join("")),
        fc.string({ unit: "binary" }),
      ),
    )
    .map((parts) => parts.join(""));

  test("parsing never throws, and what it accepts is canonical", () => {
    fc.assert(
      fc.property(text, (t) => {
        const key = parseKey(t);
        if (isRefusal(key)) return;
        expect(parseKey(key)).toBe(key);
        // To Git a ref's name is bytes.
        if (kindOf(key) !== "ref") expect(key.normalize("NFC")).toBe(key);
        expect(key).not.toMatch(LONE);
        expect(key).not.toMatch(/[\u0000-\u001f\u007f]/);
        if (!isPathKey(key)) return;
        const path = pathOf(key);
        expect(path.startsWith("/")).toBe(false);
        if (path === ".") return;
        for (const segment of path.split("/")) {
          expect(["", ".", ".."]).not.toContain(segment);
          expect(segment.toLowerCase()).not.toBe(".git");
        }
      }),
      { numRuns: propertyRuns() },
    );
  });

  test("a path and its other spellings have one key", () => {
    const segment = fc.constantFrom("a", "é", "Å", "한", "b c", "...", "x.git");
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1, maxLength: 5 }), (segments) => {
        const path = segments.join("/");
        expect(parseRepoPath(path.normalize("NFD"))).toBe(parseRepoPath(path));
        expect(parseRepoPath(`${path}//`)).toBe(parseRepoPath(path));
      }),
      { numRuns: 500 },
    );
  });

  test("utf8Length is what an encoder says", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (t) => {
        expect(utf8Length(t)).toBe(new TextEncoder().encode(t).length);
      }),
      { numRuns: 500 },
    );
  });
});
