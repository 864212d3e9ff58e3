import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { parseSignature, signatureText } from "../../src/git/commit";
import { ObjectDatabase } from "../../src/git/database";
import { isObjectId } from "../../src/git/object-name";
import { encodeTree, MODES, parseTree } from "../../src/git/tree";
import type { Files } from "../../src/platform/platform";
import { git, platform, Scene } from "./scene";

/** A disk on which somebody else does something to a directory just before a file is made in it. */
class Interrupted {
  /** So many times yet. */
  left = 0;
  readonly files: Files;

  constructor(act: (directory: string) => void) {
    const open: Files["open"] = (file, mode, permissions) => {
      const directory = path.dirname(file);
      if (mode === "create" && this.left > 0 && fs.existsSync(directory)) {
        this.left--;
        act(directory);
      }
      return platform.files.open(file, mode, permissions);
    };
    this.files = Object.assign(Object.create(platform.files) as Files, { open });
  }
}

const bytes = (text: string) => new TextEncoder().encode(text);
const FORMATS = ["sha1", "sha256"] as const;

describe.each(FORMATS)("objects of a %s repository", (format) => {
  it("are for Git what it would have written itself", async () => {
    const scene = new Scene(format);
    const objects = scene.database();
    const blob = await objects.writeBlob(bytes("hello\n"));
    const empty = await objects.writeBlob(new Uint8Array());
    expect(blob).toBe(scene.feed("hello\n", "hash-object", "--stdin"));
    const inner = await objects.writeTree([{ mode: MODES.executable, name: "run", oid: blob }]);
    // Git sorts a directory as if its name ended in a slash: "a.b" < "a/" < "a0".
    const tree = await objects.writeTree([
      { mode: MODES.file, name: "a0", oid: empty },
      { mode: MODES.tree, name: "a", oid: inner },
      { mode: MODES.symlink, name: "a.b", oid: blob },
    ]);
    const who = { name: "A. \u00dcser", email: "a@example.org", time: 1_700_000_000, zone: "+0130" };
    const commit = await objects.writeCommit({
      tree,
      parents: [],
      author: who,
      committer: who,
      message: "first\n",
    });
    await objects.flush();
    scene.git("update-ref", "refs/heads/made", commit);
    expect(scene.git("fsck", "--strict", "--no-dangling")).toBe("");
    expect(
      scene
        .git("ls-tree", "-r", "made")
        .split("\n")
        .map((line) => line.split("\t")[1]),
    ).toEqual(["a.b", "a/run", "a0"]);
    expect(scene.git("log", "-1", "--format=%an|%ae|%ad|%s", "--date=raw", "made")).toBe(
      "A. \u00dcser|a@example.org|1700000000 +0130|first",
    );
    expect(isObjectId(format, commit)).toBe(true);
    await objects.close();
  });

  it("are read loose, packed, and from another repository", async () => {
    const scene = new Scene(format);
    scene.write("src/deep/a.txt", "one\n");
    const commit = scene.commit();
    const read = async (from: Scene) => {
      const objects = from.database();
      const { tree } = await objects.readCommit(commit);
      const [src] = await objects.readTree(tree);
      const [deep] = await objects.readTree(src!.oid);
      const [file] = await objects.readTree(deep!.oid);
      const text = new TextDecoder().decode(await objects.readBlob(file!.oid));
      expect(await objects.look(file!.oid)).toEqual({ type: "blob", size: 4 });
      await objects.close();
      return `${src!.name}/${deep!.name}/${file!.name}: ${text}`;
    };
    expect(await read(scene)).toBe("src/deep/a.txt: one\n");
    scene.git("repack", "-a", "-d", "--quiet");
    scene.git("prune-packed");
    expect(await read(scene)).toBe("src/deep/a.txt: one\n");
    const borrower = new Scene(format);
    fs.writeFileSync(
      path.join(borrower.root, ".git/objects/info/alternates"),
      `${scene.root}/.git/objects\n`,
    );
    expect(await read(borrower)).toBe("src/deep/a.txt: one\n");
  });
});

describe("objects", () => {
  it("that are missing, damaged or of another kind are named, not guessed", async () => {
    const scene = new Scene();
    const objects = scene.database();
    const blob = await objects.writeBlob(bytes("x"));
    // Also before it is there for Git.
    expect(new TextDecoder().decode(await objects.readBlob(blob))).toBe("x");
    await objects.flush();
    await expect(objects.readTree(blob)).rejects.toThrow(/no tree that can be read/);
    await expect(objects.readTree("0123456789".repeat(4))).rejects.toThrow(/is not in this repository/);
    expect(await objects.read("0123456789".repeat(4))).toBe(null);
    const file = path.join(scene.root, ".git/objects", blob.slice(0, 2), blob.slice(2));
    fs.chmodSync(file, 0o644);
    fs.writeFileSync(file, "damage");
    await expect(scene.database().readBlob(blob)).rejects.toThrow(/is not in this repository/);
    // Written again, it is whole again: nobody relies on a file for being there.
    await objects.writeBlob(bytes("x"));
    await objects.flush();
    expect(scene.git("cat-file", "-p", blob)).toBe("x");
    await objects.close();
  });

  it("stand for themselves also where Git has a replacement for them", async () => {
    const scene = new Scene();
    const one = scene.feed("one", "hash-object", "-w", "--stdin");
    const two = scene.feed("two", "hash-object", "-w", "--stdin");
    // In a pack, so that it is Git that reads it.
    scene.feed(`${one}\n`, "pack-objects", "--quiet", path.join(scene.root, ".git/objects/pack/pack"));
    scene.git("prune-packed");
    scene.git("replace", one, two);
    expect(scene.git("cat-file", "-p", one)).toBe("two");
    const objects = scene.database();
    expect(new TextDecoder().decode(await objects.readBlob(one))).toBe("one");
    await objects.close();
  });

  it("are as open as the directory that they are in, and nobody may write them", async () => {
    for (const [mode, file] of [
      [0o755, 0o444],
      [0o700, 0o400],
      [0o2770, 0o440],
    ] as const) {
      const scene = new Scene();
      const root = path.join(scene.root, ".git/objects");
      fs.chmodSync(root, mode);
      const objects = scene.database();
      const oid = await objects.writeBlob(bytes(`${mode}`));
      await objects.flush();
      const at = path.join(root, oid.slice(0, 2));
      expect(fs.statSync(path.join(at, oid.slice(2))).mode & 0o7777).toBe(file);
      expect(fs.statSync(at).mode & 0o7777).toBe(mode);
    }
  });

  it("are written also where a clearing up takes away their directory while it is empty", async () => {
    const scene = new Scene();
    const between = new Interrupted(() => scene.git("prune-packed"));
    const objects = new ObjectDatabase({ ...platform, files: between.files }, git, scene.place);
    between.left = 2;
    const oid = await objects.writeBlob(bytes("x"));
    await objects.flush();
    expect(scene.git("cat-file", "-p", oid)).toBe("x");
    expect(between.left).toBe(0);
    // Not for ever: something else is wrong then.
    between.left = 1_000;
    await expect(objects.writeBlob(bytes("y"))).rejects.toThrow(/writing one of Git's objects failed/);
    expect(between.left).toBeGreaterThan(980);
    await objects.close();
  });

  it("leave nothing behind when they cannot be written", async () => {
    const scene = new Scene();
    const objects = scene.database();
    const oid = objects.nameOf("blob", bytes("x"));
    // A directory in the object's place: renaming over it fails.
    fs.mkdirSync(path.join(scene.root, ".git/objects", oid.slice(0, 2), oid.slice(2)), { recursive: true });
    await objects.writeBlob(bytes("x"));
    await expect(objects.flush()).rejects.toThrow(/syncing Git's objects failed/);
    expect(fs.readdirSync(path.join(scene.root, ".git/objects", oid.slice(0, 2)))).toEqual([oid.slice(2)]);
  });
});

/** How many files of this process are open there; other tests of it may still close theirs. */
function openBelow(folder: string): number {
  return fs.readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return fs.readlinkSync(`/proc/self/fd/${fd}`).startsWith(folder);
    } catch {
      return false;
    }
  }).length;
}

it("many objects at once take no more open files than a few, and all of them are there", async () => {
  const scene = new Scene();
  const objects = scene.database();
  const open = () => openBelow(scene.root);
  const oids: string[] = [];
  for (let n = 0; n < 300; n++) oids.push(await objects.writeBlob(bytes(`content ${n}`)));
  expect(open()).toBeLessThan(100);
  await objects.flush();
  expect(open()).toBe(0);
  const said = scene.feed(oids.join("\n"), "cat-file", "--batch-check=%(objecttype)");
  expect(new Set(said.split("\n"))).toEqual(new Set(["blob"]));
});

it("what was not flushed is gone with the database, and leaves no trace", async () => {
  const scene = new Scene();
  const objects = scene.database();
  const oid = await objects.writeBlob(bytes("never"));
  await objects.close();
  expect(fs.readdirSync(path.join(scene.root, ".git/objects", oid.slice(0, 2)))).toEqual([]);
});

describe("a tree", () => {
  it("comes out as it went in, also with names that are no Unicode", () => {
    const entries = [
      { mode: MODES.file, name: "\xff\xfe", oid: "ab".repeat(20) },
      { mode: MODES.tree, name: "\xc3\xbc", oid: "cd".repeat(20) },
    ];
    expect(parseTree("sha1", encodeTree(entries))).toEqual([...entries].reverse());
  });

  it.each([
    ["cut off in a name", "100644 a"],
    ["cut off in an id", "100644 a\0shortshort"],
    ["without a name", `100644 \0${"x".repeat(20)}`],
    ["with a mode that is none", `1006x4 a\0${"x".repeat(20)}`],
    ["without a space", `a\0${"x".repeat(20)}`],
  ])("%s is none", (_, text) => {
    expect(parseTree("sha1", bytes(text))).toBe(null);
  });

  it("of one entry ends exactly where its id ends", () => {
    expect(parseTree("sha1", bytes(`100644 a\0${"x".repeat(20)}`))).toHaveLength(1);
    expect(parseTree("sha1", bytes(`100644 a\0${"x".repeat(19)}`))).toBe(null);
  });
});

describe("a signature", () => {
  it("reads what Git says, and writes nothing that would end it early", () => {
    expect(parseSignature("A U Thor <a@x.org> 1700000000 -0800")).toEqual({
      name: "A U Thor",
      email: "a@x.org",
      time: 1_700_000_000,
      zone: "-0800",
    });
    expect(parseSignature("nobody")).toBe(null);
    const text = signatureText({ name: " Ev<il>\nauthor x ", email: "\n<a@x>", time: 1, zone: "+0000" });
    expect(text).toBe("Evilauthor x <a@x> 1 +0000");
  });
});
