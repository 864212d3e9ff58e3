import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseBatch, parseChanges, parseTreeDiffs, readCommit } from "../../src/git/commit-text";
import { CommitReader, READING_LIMITS } from "../../src/git/commits";
import { git, Scene } from "./scene";

const HEX = "0123456789abcdef".split("");
const oid = fc
  .array(fc.constantFrom(...HEX), { minLength: 40, maxLength: 40 })
  .map((digits) => digits.join(""))
  .filter((id) => !/^0+$/.test(id));
/** What a path may be in a tree: any bytes but NUL, among them whole answers of Git's. */
const trap = fc.tuple(oid, oid).map(([a, b]) => `\n${a} ${b}\n:100644 100644 ${a} ${b} M`);
const path = fc
  .oneof(
    fc.string({ minLength: 1, unit: "binary" }),
    trap,
    fc.tuple(oid).map(([a]) => `x\n${a}\n`),
  )
  .map((text) => text.replaceAll("\0", ""))
  .filter((text) => text !== "" && !/[\ud800-\udfff]/.test(text));
const ZEROS = "0".repeat(40);
const change = fc
  .record({ path, status: fc.constantFrom("added", "changed", "deleted"), one: oid, other: oid })
  .map(({ path: name, status, one, other }) => ({
    path: name,
    status,
    before: status === "added" ? null : one,
    oid: status === "deleted" ? null : other,
    mode: status === "deleted" ? null : "100644",
  }));
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

const asGit = ({ path: name, status, before, oid: after }: Change) =>
  `:${before ? "100644" : "000000"} ${after ? "100644" : "000000"} ${before ?? ZEROS} ${after ?? ZEROS} ${
    { added: "A", changed: "M", deleted: "D" }[status]
  }\0${name}\0`;
const utf8 = (text: string) => new TextEncoder().encode(text);
const joined = (parts: readonly Uint8Array[]) => new Uint8Array(Buffer.concat(parts));

describe("the parser of tree differences", () => {
  const answer = fc.array(
    fc.record({ pair: fc.tuple(oid, oid), changes: fc.array(change, { maxLength: 5 }) }),
    { maxLength: 6 },
  );

  it("gives back what was said, whatever the paths hold", () => {
    fc.assert(
      fc.property(answer, (parts) => {
        const said = parts.map(({ pair, changes }) => `${pair.join(" ")}\n${changes.map(asGit).join("")}`);
        expect(
          parseTreeDiffs(
            utf8(said.join("")),
            parts.map(({ pair }) => pair),
          ),
        ).toEqual(parts.map(({ changes }) => changes));
        expect(parseChanges(utf8(parts.flatMap(({ changes }) => changes.map(asGit)).join("")))).toEqual(
          parts.flatMap(({ changes }) => changes),
        );
      }),
    );
  });

  it("takes no part of an answer for the whole of it", () => {
    fc.assert(
      fc.property(answer, fc.nat(), (parts, cut) => {
        const whole = utf8(
          parts.map(({ pair, changes }) => `${pair.join(" ")}\n${changes.map(asGit).join("")}`).join("") +
            `${"a".repeat(40)} ${"b".repeat(40)}\n`,
        );
        const pairs = [
          ...parts.map(({ pair }) => pair),
          ["a".repeat(40), "b".repeat(40)] as [string, string],
        ];
        expect(parseTreeDiffs(whole.subarray(0, cut % whole.length), pairs)).toBeNull();
        expect(parseTreeDiffs(joined([whole, utf8("x")]), pairs)).toBeNull();
      }),
    );
  });

  it("survives any bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        parseTreeDiffs(bytes, [["a".repeat(40), "b".repeat(40)]]);
        parseChanges(bytes);
      }),
    );
  });
});

describe("the parser of objects", () => {
  const object = fc.record({
    oid,
    type: fc.constantFrom("commit", "blob", "tree", "tag"),
    content: fc.uint8Array(),
  });

  it("gives back what was said, whatever the contents hold, and nothing of half an answer", () => {
    fc.assert(
      fc.property(fc.array(object, { minLength: 1, maxLength: 5 }), fc.nat(), (objects, cut) => {
        const bytes = joined(
          objects.flatMap(({ oid: name, type, content }) => [
            utf8(`${name} ${type} ${content.length}\n`),
            content,
            utf8("\n"),
          ]),
        );
        const names = objects.map(({ oid: name }) => name);
        const parsed = parseBatch(bytes, names);
        expect(parsed?.map(({ content }) => [...content])).toEqual(
          objects.map(({ content }) => [...content]),
        );
        expect(parseBatch(bytes.subarray(0, cut % bytes.length), names)).toBeNull();
        expect(parseBatch(bytes, [...names, names[0]!])).toBeNull();
      }),
    );
  });

  it("reads a commit with any message, any extra header and any author", () => {
    const line = fc.string().map((text) => text.replaceAll(/[\n\0<>]/g, ""));
    fc.assert(
      fc.property(
        fc.record({
          tree: oid,
          parents: fc.array(oid, { maxLength: 4 }),
          name: line,
          secs: fc.nat(),
          extra: fc.array(line, { maxLength: 3 }),
          message: fc.string(),
        }),
        ({ tree, parents, name, secs, extra, message }) => {
          const text = [
            `tree ${tree}`,
            ...parents.map((parent) => `parent ${parent}`),
            `author ${name} <a@b> ${secs} +0000`,
            `committer ${name} <a@b> ${secs + 1} -0130`,
            ...extra.map((one) => `x-${one}`),
          ].join("\n");
          expect(readCommit("x", utf8(`${text}\n\n${message}`))).toEqual({
            oid: "x",
            tree,
            parents,
            authoredAtMs: secs * 1000,
            committedAtMs: (secs + 1) * 1000,
            message,
          });
        },
      ),
    );
    expect(readCommit("x", utf8("parent a\n"))).toBeNull();
    expect(readCommit("x", utf8(`tree ${"a".repeat(40)}`))).toMatchObject({ message: "", authoredAtMs: 0 });
  });
});

describe.each(["sha1", "sha256"] as const)("the reader of commits, in a repository of %s", (format) => {
  const reader = (scene: Scene, limits = READING_LIMITS) =>
    new CommitReader(git, { cwd: scene.root }, limits);
  const all = { names: ["HEAD"], options: [] };

  it("reads commits without a message or trailers beside those with, and the first one of all", async () => {
    const scene = new Scene(format);
    scene.write("a", "1");
    const first = scene.commit("one");
    scene.write("a", "2");
    scene.git("commit", "--quiet", "--all", "--allow-empty-message", "--message", "");
    scene.git("rm", "--quiet", "a");
    scene.write("b", "3");
    scene.commit("three\n\nA-Trailer: x");
    const found = await reader(scene).changing(all);
    expect(
      found.map(({ message, changes }) => [message.trim(), changes.map((c) => [c.path, c.status])]),
    ).toEqual([
      ["one", [["a", "added"]]],
      ["", [["a", "changed"]]],
      [
        "three\n\nA-Trailer: x",
        [
          ["a", "deleted"],
          ["b", "added"],
        ],
      ],
    ]);
    expect(found[0]!.oid).toBe(first);
    expect(await reader(scene).difference(first, scene.git("rev-parse", "HEAD"))).toMatchObject([
      { path: "a", status: "deleted", oid: null },
      { path: "b", status: "added", before: null },
    ]);
    expect(await reader(scene).difference(null, first)).toMatchObject([{ path: "a", status: "added" }]);
    expect(await reader(scene).changing({ names: ["HEAD", "^HEAD"], options: [] })).toEqual([]);
  });

  it("sees what a merge itself changes, and leaves to the merged commits what they changed", async () => {
    const scene = new Scene(format);
    for (const file of ["both", "left", "right", "sly"]) scene.write(file, "0");
    scene.commit("base");
    scene.git("switch", "--quiet", "--create", "side");
    scene.write("right", "1");
    scene.commit("right");
    scene.git("switch", "--quiet", "-");
    scene.write("left", "1");
    scene.commit("left");
    scene.git("merge", "--quiet", "--no-commit", "--no-ff", "side");
    scene.write("sly", "1");
    scene.write("new", "1");
    const merge = scene.commit("merge");
    const found = (await reader(scene).changing(all)).find(({ oid: name }) => name === merge)!;
    expect(found.parents).toHaveLength(2);
    expect(found.changes.map(({ path: name }) => name)).toEqual(["new", "sly"]);
  });

  it("is not misled by a name that looks like Git's answer, nor by a replaced commit", async () => {
    const scene = new Scene(format);
    scene.write("a", "1");
    const first = scene.commit("one");
    const odd = `x\n${first}\n:100644 100644 ${first} ${first} M`;
    scene.write(odd, "1");
    scene.write("z", "1");
    const second = scene.commit("two");
    scene.write("a", "2");
    const third = scene.commit("three");
    scene.git("replace", second, first);
    scene.git("replace", third, first);
    const found = await reader(scene).changing(all);
    expect(found.map(({ oid: name }) => name)).toEqual([first, second, third]);
    expect(found.map(({ changes }) => changes.map((c) => c.path))).toEqual([["a"], [odd, "z"], ["a"]]);
  });

  it("refuses more than its limits, and what is not there", async () => {
    const scene = new Scene(format);
    for (const file of ["a", "b", "c"]) {
      scene.write(file, "1");
      scene.commit(file);
    }
    const limited = (limits: { commits?: number; changes?: number }) =>
      reader(scene, { ...READING_LIMITS, ...limits }).changing(all);
    await expect(limited({ commits: 2 })).rejects.toMatchObject({ code: "E_LIMIT" });
    await expect(limited({ changes: 2 })).rejects.toMatchObject({ code: "E_LIMIT" });
    expect(await limited({ commits: 3, changes: 3 })).toHaveLength(3);
    const digits = format === "sha1" ? 40 : 64;
    await expect(reader(scene).read(["1".repeat(digits)])).rejects.toMatchObject({ code: "E_GIT" });
    await expect(reader(scene).changing({ names: ["1".repeat(digits)], options: [] })).rejects.toMatchObject({
      code: "E_GIT",
    });
  });
});
