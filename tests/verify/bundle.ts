import { mkdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { BuildOptions, Plugin } from "esbuild";
import type { Plant } from "./plants";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface Bundled {
  readonly path: string;
  /** Whether the planted bug is in it: a program that does not have the file cannot have its bug. */
  readonly isPlanted: boolean;
}

/**
 * A TypeScript program as one file for plain Node, with everything but esbuild in it. A plant changes one place of the
 * sources on the way; the sources themselves stay as they are.
 */
export async function bundle(entry: string, folder: string, plant: Plant | null = null): Promise<Bundled> {
  const path = join(folder, `${basename(entry, ".ts")}.cjs`);
  mkdirSync(folder, { recursive: true });
  return grow(plant, path, { entryPoints: [join(ROOT, entry)] });
}

/** The same for a program of a few lines, as if they were in a file of that name. */
export async function bundleText(
  text: string,
  name: string,
  folder: string,
  plant: Plant | null,
): Promise<Bundled> {
  const path = join(folder, `${basename(name, ".ts")}.cjs`);
  mkdirSync(folder, { recursive: true });
  const resolveDir = join(ROOT, dirname(name));
  const stdin = { contents: text, sourcefile: name, resolveDir, loader: "ts" } as const;
  return grow(plant, path, { stdin });
}

let programSources: Promise<ReadonlySet<string>> | undefined;

/** Whether `cotenant` is made of this source, among others. */
export async function isInProgram(file: string): Promise<boolean> {
  programSources ??= sourcesOf("src/cli/main.ts");
  return (await programSources).has(file);
}

async function sourcesOf(entry: string): Promise<ReadonlySet<string>> {
  const { build } = await import("esbuild");
  const { metafile } = await build({
    ...options(new Gardener(null)),
    entryPoints: [join(ROOT, entry)],
    outdir: ROOT,
    write: false,
    metafile: true,
  });
  return new Set(Object.keys(metafile.inputs));
}

async function grow(plant: Plant | null, path: string, entry: BuildOptions): Promise<Bundled> {
  const { build } = await import("esbuild");
  const gardener = new Gardener(plant);
  await build({ ...options(gardener), ...entry, outfile: path });
  return { path, isPlanted: gardener.hasPlanted };
}

function options({ plugin }: Gardener): BuildOptions {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
  return {
    absWorkingDir: ROOT,
    bundle: true,
    platform: "node",
    // What jsonc-parser has for Node loads its parts in a way that no bundler sees.
    mainFields: ["module", "main"],
    format: "cjs",
    target: "node20",
    alias: { esbuild: join(ROOT, "node_modules/esbuild/lib/main.js") },
    external: [join(ROOT, "node_modules/esbuild/lib/main.js"), "vitest"],
    define: { __COTENANT_VERSION__: JSON.stringify(version) },
    plugins: [plugin],
    logLevel: "warning",
  };
}

class Gardener {
  hasPlanted = false;
  readonly #plant: Plant | null;

  constructor(plant: Plant | null) {
    this.#plant = plant;
  }

  get plugin(): Plugin {
    return {
      name: "gardener",
      setup: ({ onLoad }) => {
        onLoad({ filter: /\.ts$/ }, ({ path }) => {
          const text = this.#planted(readFileSync(path, "utf8"), relative(ROOT, path).replaceAll("\\", "/"));
          // A bundle is one module; each source keeps the address it was written with.
          const contents = text
            .replace(/import\.meta\.url(?!")/g, JSON.stringify(pathToFileURL(path).href))
            .replace(/\b__dirname(?=,)/g, JSON.stringify(dirname(path)));
          return { contents, loader: "ts" };
        });
      },
    };
  }

  #planted(text: string, path: string): string {
    const plant = this.#plant;
    if (plant === null || plant.file !== path) return text;
    if (text.split(plant.from).length !== 2)
      throw new Error(
        `plant "${plant.name}": ${path} has its place ${text.split(plant.from).length - 1} times`,
      );
    this.hasPlanted = true;
    return text.replace(plant.from, () => plant.to);
  }
}
