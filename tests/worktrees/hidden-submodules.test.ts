import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { committedChanges, stagedChanges } from "../../src/features/hooks/changes";
import { gitState, isDirty } from "../../src/features/worktrees/survey";
import { dirtyPaths } from "../../src/identity/dirty-paths";
import { git, Scene } from "../git/scene";

/** A submodule that the repository itself tells Git to pass over; what Git says of it is asked for all the same. */
let scene: Scene;
let inner: Scene;
beforeEach(() => {
  scene = new Scene();
  inner = new Scene("sha1", path.join(scene.root, "v"));
  inner.write("a.txt", "1\n");
  inner.commit();
  scene.write(".gitmodules", '[submodule "v"]\n\tpath = v\n\turl = ./v\n\tignore = all\n');
  scene.commit();
  inner.write("a.txt", "2\n");
});
const dirt = async () => {
  const worktree = { root: scene.root, gitDir: path.join(scene.root, ".git"), branch: "main" };
  return (await gitState(git, worktree, null))!.dirt;
};

describe("a submodule with ignore = all", () => {
  it("is dirty when it stands elsewhere, and to be kept also when only files in it differ", async () => {
    expect(isDirty(await dirt())).toBe(true);
    expect(await dirtyPaths(git, scene.root, [])).toEqual([]);
    inner.commit();
    expect(isDirty(await dirt())).toBe(true);
    expect(await dirtyPaths(git, scene.root, [])).toEqual(["v"]);
  });

  it("is among what is staged, and what was committed", async () => {
    scene.git("update-index", "--cacheinfo", `160000,${inner.commit()},v`);
    expect(await stagedChanges(git, { cwd: scene.root }, "HEAD")).toMatchObject([{ path: "v" }]);
    scene.git("commit", "--quiet", "--message", "moved");
    expect(await committedChanges(git, { cwd: scene.root }, "HEAD")).toMatchObject([{ path: "v" }]);
  });
});
