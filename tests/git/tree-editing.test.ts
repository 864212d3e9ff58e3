import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nameOfObject, withHeader } from "../../src/git/object-name";
import { encodeTree, MODES, type TreeEntry } from "../../src/git/tree";
import { editTree, type Leaf, lookUp, TreeClash, type Trees } from "../../src/git/tree-editor";
import { platform, Scene } from "./scene";

/** Trees in memory that count what is read of them. */
class Shelf implements Trees {
  readonly kept = new Map<string, readonly TreeEntry[]>();
  read = 0;

  async readTree(oid: string): Promise<readonly TreeEntry[]> {
    this.read++;
    return this.kept.get(oid)!;
  }

  async writeTree(entries: Iterable<TreeEntry>): Promise<string> {
    const all = [...entries];
    const oid = nameOfObject(platform.digest, "sha1", withHeader("tree", encodeTree(all)));
    this.kept.set(oid, all);
    return oid;
  }

  /** Every path with what stands there. */
  async list(oid: string, above = ""): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    for (const { name, mode, oid: at } of this.kept.get(oid)!) {
      if (mode === MODES.tree)
        for (const [path, leaf] of await this.list(at, `${above}${name}/`)) found.set(path, leaf);
      else found.set(above + name, `${mode} ${at}`);
    }
    return found;
  }
}

const blob = (n: number): Leaf => ({ mode: MODES.file, oid: n.toString(16).padStart(40, "0") });
const changes = (entries: Record<string, Leaf | null>) => new Map(Object.entries(entries));

describe("editing a tree", () => {
  it("comes to what a plain list of paths would come to", async () => {
    const names = fc.constantFrom("a", "b", "a.b", "a0", "\u00fc");
    const path = fc.array(names, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/"));
    const step = fc.dictionary(path, fc.option(fc.integer({ min: 1, max: 9 })), { maxKeys: 6 });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 6 }), async (steps) => {
        const shelf = new Shelf();
        let tree: string | null = null;
        let model = new Map<string, string>();
        for (const wanted of steps) {
          const next = new Map(model);
          for (const [at, n] of Object.entries(wanted))
            for (const known of n === null ? model.keys() : [])
              if (known === at || known.startsWith(`${at}/`)) next.delete(known);
          for (const [at, n] of Object.entries(wanted)) if (n !== null) next.set(at, `100644 ${blob(n).oid}`);
          const clashes = [...next.keys()].some((one) =>
            [...next.keys()].some((other) => other.startsWith(`${one}/`)),
          );
          const edit = editTree(
            shelf,
            tree,
            new Map(Object.entries(wanted).map(([at, n]) => [at, n === null ? null : blob(n)])),
          );
          if (clashes) {
            await expect(edit).rejects.toThrow(TreeClash);
            continue;
          }
          tree = await edit;
          model = next;
          const decoded = [...(await shelf.list(tree))].map(([at, leaf]) => [
            Buffer.from(at, "latin1").toString(),
            leaf,
          ]);
          expect(Object.fromEntries(decoded)).toEqual(Object.fromEntries(model));
          const found = await lookUp(shelf, tree, model.keys());
          expect([...found.keys()].sort()).toEqual([...model.keys()].sort());
        }
      }),
    );
  });

  it("reads and writes only the trees along the changed paths", async () => {
    const shelf = new Shelf();
    const many: Record<string, Leaf> = {};
    for (let i = 0; i < 400; i++) many[`d${i % 20}/e${i % 5}/f${i}`] = blob(i + 1);
    const tree = await editTree(shelf, null, changes(many));
    const before = shelf.kept.size;
    shelf.read = 0;
    await editTree(shelf, tree, changes({ "d3/e3/f3": blob(999) }));
    expect(shelf.read).toBe(3);
    expect(shelf.kept.size - before).toBe(3);
  });

  it("leaves the tree's name as it is where nothing changes", async () => {
    const shelf = new Shelf();
    const tree = await editTree(shelf, null, changes({ "a/b": blob(1) }));
    expect(await editTree(shelf, tree, changes({ "a/b": blob(1), "a/c": null, "x/y": null }))).toBe(tree);
  });

  it("takes directories along that become empty, up to the root", async () => {
    const shelf = new Shelf();
    const tree = await editTree(shelf, null, changes({ "a/b/c": blob(1) }));
    const empty = await editTree(shelf, tree, changes({ "a/b/c": null }));
    expect(shelf.kept.get(empty)).toEqual([]);
    expect(empty).toBe("4b825dc642cb6eb9a060e54bf8d69288fbee4904");
  });

  it("makes a directory of a file, and a file of a directory, only where the other goes in the same step", async () => {
    const shelf = new Shelf();
    const tree = await editTree(shelf, null, changes({ a: blob(1), "d/x": blob(2) }));
    await expect(editTree(shelf, tree, changes({ "a/b": blob(3) }))).rejects.toThrow(
      "a is a file, not a directory",
    );
    await expect(editTree(shelf, tree, changes({ d: blob(3) }))).rejects.toThrow("d is a directory");
    const turned = await editTree(shelf, tree, changes({ a: null, "a/b": blob(3), d: blob(4), "d/x": null }));
    expect([...(await shelf.list(turned)).keys()].sort()).toEqual(["a/b", "d"]);
    await expect(editTree(shelf, null, changes({ a: blob(1), "a/b": blob(2) }))).rejects.toThrow(/at once/);
  });

  it("answers with the tree that Git makes of the same changes", async () => {
    const scene = new Scene();
    scene.write("src/a.ts", "a\n");
    scene.write("src/b/c.ts", "c\n");
    scene.write("top", "t\n");
    const commit = scene.commit();
    const objects = scene.database();
    const { tree } = await objects.readCommit(commit);
    const oid = await objects.writeBlob(new TextEncoder().encode("new\n"));
    const made = await editTree(
      objects,
      tree,
      changes({
        "src/b/c.ts": null,
        "src/\u00e9/n.ts": { mode: MODES.executable, oid },
        top: { mode: MODES.symlink, oid },
      }),
    );
    await objects.flush();
    scene.git("rm", "--quiet", "--cached", "src/b/c.ts");
    scene.git(
      "update-index",
      "--add",
      "--cacheinfo",
      `100755,${oid},src/\u00e9/n.ts`,
      "--cacheinfo",
      `120000,${oid},top`,
    );
    expect(made).toBe(scene.git("write-tree"));
    await objects.close();
  });
});
