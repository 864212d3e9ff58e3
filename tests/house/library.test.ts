import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** What is run as soon as a program of ours is loaded: whatever is imported in so many words, and not when it is needed. */
async function loadedBy(entry: string): Promise<string[]> {
  const { metafile } = await build({
    entryPoints: [join(ROOT, entry)],
    absWorkingDir: ROOT,
    bundle: true,
    write: false,
    metafile: true,
    platform: "node",
    mainFields: ["module", "main"],
    external: ["fs-native-extensions"],
    logLevel: "error",
  });
  const found = new Set([entry]);
  for (const file of found)
    for (const { path, kind, external } of metafile.inputs[file]?.imports ?? [])
      if (kind !== "dynamic-import" && external !== true) found.add(path);
  return [...found];
}

it("the library loads what features do only when it is called", async () => {
  const loaded = await loadedBy("src/index.ts");
  expect(loaded).toContain("src/coordinator/workspace.ts");
  expect(loaded.filter((file) => file.startsWith("src/features/"))).toEqual([
    "src/features/ledger/in-front.ts",
  ]);
  expect(loaded.filter((file) => file.includes("node_modules/@secretlint"))).toEqual([]);
});
