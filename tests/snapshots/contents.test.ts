import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readContents } from "../../src/features/snapshots/contents";
import type { Descriptor } from "../../src/features/snapshots/descriptor";
import { fill } from "../../src/features/snapshots/file-writer";
import { encodeManifest } from "../../src/features/snapshots/manifest";
import { digestOf } from "../../src/features/snapshots/parts";
import { thisMachine } from "../../src/platform/node/this-machine";
import { nodeTrees } from "../../src/platform/node/trees";
import { scratch } from "../support/scratch";

function setting() {
  const root = join(scratch(), "repo");
  execFileSync("git", ["init", "--quiet", root]);
  const { platform, git } = thisMachine();
  const studio = { platform, git, trees: nodeTrees(), format: "sha1" as const, refFormat: "files" as const };
  const place = { root, gitDir: join(root, ".git"), commonDir: join(root, ".git") };
  const write = (type: string, content: Uint8Array) =>
    execFileSync("git", ["hash-object", "-t", type, "-w", "--stdin", "--literally"], {
      cwd: root,
      input: content,
    })
      .toString()
      .trim();
  return { root, studio, place, write };
}

/** A tree exactly as it is given, which no Git would write. */
function treeOf(entries: readonly (readonly [mode: string, name: string, oid: string])[]): Buffer {
  return Buffer.concat(
    entries.map(([mode, name, oid]) =>
      Buffer.concat([Buffer.from(`${mode} ${name}\0`, "latin1"), Buffer.from(oid, "hex")]),
    ),
  );
}

/** A snapshot that somebody made by hand around a tree. */
function forged({ write, studio }: ReturnType<typeof setting>, tree: string, lines: string[]): Descriptor {
  const usual = { file: 0o644, executable: 0o755, directory: 0o755 };
  const manifest = encodeManifest({ usual, files: new Map(), directories: new Map(), unlisted: new Map() });
  const rest = write("tree", treeOf([["100644", "manifest", write("blob", manifest)]]));
  const who = "x <x> 0 +0000";
  const commit = (of: string, parents: string) =>
    write("commit", Buffer.from(`tree ${of}\n${parents}author ${who}\ncommitter ${who}\n\nx\n`));
  return {
    snapshot_id: "01M7G6KS0JX8JQPG438R8ZVW6J",
    tree,
    commit: commit(tree, `parent ${commit(rest, "")}\n`),
    digest: digestOf(studio.platform, lines),
  } as Descriptor;
}

describe("what a snapshot holds", () => {
  it("is refused when it names something outside, or Git's own directory", async () => {
    for (const name of ["..", ".", ".git", ".GIT", ".git ", "git~1", "a/b", ""]) {
      const at = setting();
      const tree = at.write("tree", treeOf([["100644", name, at.write("blob", Buffer.from("x"))]]));
      const reading = readContents(at.studio, at.place, forged(at, tree, []));
      await expect(reading, JSON.stringify(name)).rejects.toMatchObject({ code: "E_PARTIAL_SNAPSHOT" });
    }
  });

  it("is refused when its digest is not that of its descriptor", async () => {
    const at = setting();
    const tree = at.write("tree", treeOf([["100644", "a", at.write("blob", Buffer.from("x"))]]));
    await expect(readContents(at.studio, at.place, forged(at, tree, []))).rejects.toThrow(
      "not those that were kept",
    );
  });

  it("is refused when a name is there twice, as a link and as a directory", async () => {
    const at = setting();
    const outside = scratch();
    const link = at.write("blob", Buffer.from(outside));
    const inner = at.write("tree", treeOf([["100644", "b", at.write("blob", Buffer.from("x"))]]));
    const entries = [
      { path: "a", kind: "symlink" as const, mode: 0, oid: link },
      { path: "a/b", kind: "file" as const, mode: 0o644, oid: at.write("blob", Buffer.from("x")) },
    ];
    const to = join(scratch(), "to");
    fs.mkdirSync(to);
    const filling = fill(at.studio, at.place.commonDir, to, {
      files: entries,
      directories: new Map([["a", 0o755]]),
    });
    await expect(filling).rejects.toThrow();
    expect(inner).toMatch(/^[0-9a-f]{40}$/);
    expect(fs.readdirSync(outside), "nothing went through the link").toEqual([]);
  });
});
