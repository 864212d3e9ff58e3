import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { nodePlatform } from "../../src/platform/node/node";
import { scratch } from "../support/scratch";

function place() {
  const dir = scratch();
  fs.writeFileSync(path.join(dir, "file"), "12345");
  fs.mkdirSync(path.join(dir, "directory"));
  fs.symlinkSync("file", path.join(dir, "link"));
  fs.symlinkSync("nowhere", path.join(dir, "dangling"));
  const names = ["file", "directory", "link", "missing", "file/below", "dangling"];
  return { dir, names, paths: names.map((name) => path.join(dir, name)) };
}

async function look(paths: readonly string[], expected?: number): Promise<number[][]> {
  const into = new Float64Array(paths.length * 4);
  if (expected !== undefined) into.fill(expected);
  await nodePlatform().files.lstatAll(paths.length, (index) => paths[index]!, into);
  return paths.map((_, index) => [...into.subarray(index * 4, index * 4 + 4)]);
}

const numbersOf = (file: string) => {
  const { ino, size, mtimeMs, ctimeMs } = fs.lstatSync(file);
  return [ino, size, mtimeMs, ctimeMs];
};

describe("many stats at once", () => {
  it("tell what lstat tells", async () => {
    const { paths } = place();
    const [file, directory, link, missing, below] = await look(paths);
    expect(file).toEqual(numbersOf(paths[0]!));
    expect(directory).toEqual(numbersOf(paths[1]!));
    expect(link![0]).toBeNaN();
    expect(missing).toEqual([-1, 0, 0, 0]);
    expect(below![0] === -1 || Number.isNaN(below![0])).toBe(true);
  });

  it("tell the same where nothing was expected", async () => {
    const { paths } = place();
    const [file, , link, missing] = await look(paths, -1);
    expect(file).toEqual(numbersOf(paths[0]!));
    expect(link![0]).toBeNaN();
    expect(missing![0]).toBe(-1);
  });

  it("are the same seen from inside", async () => {
    const { dir, paths } = place();
    const before = process.cwd();
    process.chdir(dir);
    try {
      expect((await look(paths))[0]).toEqual(numbersOf("file"));
    } finally {
      process.chdir(before);
    }
  });

  it("say that a file was written in place, with its old time put back", async () => {
    const { paths } = place();
    const [before] = await look(paths);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const { atime, mtime } = fs.statSync(paths[0]!);
    fs.writeFileSync(paths[0]!, "54321");
    fs.utimesSync(paths[0]!, atime, mtime);
    const [after] = await look(paths);
    expect(after!.slice(0, 2)).toEqual(before!.slice(0, 2));
    expect(after![3]).toBeGreaterThan(before![3]!);
  });
});
