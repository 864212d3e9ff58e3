/**
 * Builds dist/: the command line (cli.cjs, with compiled code in cache/), the library (index.cjs, types/), the native lock (native/) and the
 * licences of what is inside (licenses/).
 *
 *   node scripts/build.mjs [--force] [--root <dir>]
 *
 * Does nothing when the inputs are those of the last build. One build at a time; files appear whole and by
 * rename, so a `cotenant` that starts meanwhile finds the old bundle or the new one, never none.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs, promisify } from "node:util";
import { ROOT, say, seconds, walk } from "./project.mjs";

/** A program with the commands that people and hooks wait for all day starts faster than one with all. */
const PROGRAMS = [
  { entry: "src/cli/main.ts", out: "cli.cjs" },
  {
    entry: "src/cli/main.ts",
    out: "hot.cjs",
    only: /\/commands\/(?:locks|claims|status)$|^\.\/version$/,
    warmUp: ["lock", "claim status", "status"],
  },
  {
    entry: "src/cli/main.ts",
    out: "hook.cjs",
    only: /\/commands\/hook-/,
    warmUp: ["hook"],
  },
  {
    entry: "src/cli/main.ts",
    out: "snapshot.cjs",
    only: /\/commands\/snapshot/,
    warmUp: ["snapshot"],
  },
  // Harnesses ask before every write.
  { entry: "src/features/guard/entry/guard-main.ts", out: "guard.cjs", warmUp: ["guard"] },
  // Every such call begins here, and most end here. It is so small that all of it is compiled beforehand.
  { entry: "src/features/guard/entry/quick-guard.ts", out: "quick-guard.cjs", warmUp: ["--whole"] },
];
const LIBRARY = "src/index.ts";
/**
 * What one command loads in one of its ways: a file of its own, which no other command has to read. It has classes of its own:
 * no error of a chunk may be told by its class.
 */
const CHUNKS = [
  // The parser of shell commands is larger than all the rest of it.
  { entry: "src/features/guard/shell/walk.ts", out: "shell-reading.cjs", loadedAs: /^\.\/walk$/ },
  // Putting Git hooks back is rare.
  { entry: "src/features/hooks/installation/mend.ts", out: "mend.cjs", loadedAs: /^\.\/mend$/ },
  {
    entry: "src/features/harnesses/real-canary/real-canary.ts",
    out: "real-canary.cjs",
    loadedAs: /\/real-canary\/real-canary$/,
  },
  {
    entry: "src/daemon/start-for-hooks.ts",
    out: "start-for-hooks.cjs",
    loadedAs: /\/daemon\/start-for-hooks$/,
  },
];
const BUNDLES = [
  ...PROGRAMS,
  ...CHUNKS,
  { entry: "src/features/hooks/entry/quick-hook.ts", out: "quick-hook.cjs" },
  { entry: LIBRARY, out: "index.cjs" },
];
const INPUTS = ["src", "package.json", "package-lock.json", "tsconfig.json"];
const NATIVE = ["linux", "darwin", "win32"].flatMap((os) => [`${os}-x64`, `${os}-arm64`]);
const NATIVE_PACKAGE = "fs-native-extensions";
const STAMP = ".stamp";
const UNFINISHED = ".new-";

/** False when everything was up to date. `root` holds the sources; tools always come from this project. */
export async function ensureBuilt({ root = ROOT, force = false } = {}) {
  const dist = join(root, "dist");
  if (!force && isFresh(root, dist)) return false;
  for (const { entry } of BUNDLES) {
    if (!existsSync(join(root, entry))) throw new Error(`cannot build: ${entry} is missing`);
  }
  mkdirSync(dist, { recursive: true });
  const unlock = await lockBuild(dist);
  try {
    // Whoever held the lock may have built just what we want.
    if (!force && isFresh(root, dist)) return false;
    await build(root, dist);
    return true;
  } finally {
    unlock();
  }
}

async function build(root, dist) {
  const started = performance.now();
  // Before anything is read: an edit during the build makes this stamp stale, and the next build sees it.
  const stamp = fingerprint(root);
  // What a killed build left behind; nobody else is building.
  for (const name of readdirSync(dist).filter((name) => name.startsWith(UNFINISHED))) {
    rmSync(join(dist, name), { recursive: true, force: true });
  }
  const made = mkdtempSync(join(dist, UNFINISHED));
  try {
    const [packages] = await Promise.all([bundle(root, made), declareTypes(root, made)]);
    copyNative(made);
    copyLicenses(root, packages, made);
    for (const { out } of PROGRAMS) nameBundle(join(made, out));
    await writeCodeCaches(root, made);
    writeFileSync(join(made, "build-id"), `${buildId(made)}\n`);
    install(made, dist, stamp);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
  const sizes = BUNDLES.map(({ out }) => `${out} ${Math.ceil(statSync(join(dist, out)).size / 1024)} KB`);
  say(`built ${relative(process.cwd(), dist) || "."}: ${sizes.join(", ")} in ${seconds(started)}`);
}

/** Answers the names of the packages that went into the bundles. */
async function bundle(root, made) {
  const esbuild = await import("esbuild");
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const results = await Promise.all(
    BUNDLES.map(({ entry, out, only }) =>
      esbuild.build({
        entryPoints: [join(root, entry)],
        outfile: join(made, out),
        absWorkingDir: root,
        tsconfig: join(ROOT, "tsconfig.json"),
        nodePaths: [join(ROOT, "node_modules")],
        bundle: true,
        platform: "node",
        // What jsonc-parser has for Node loads its parts in a way that no bundler sees.
        mainFields: ["module", "main"],
        format: "cjs",
        target: "node20",
        // Short names take 2 ms off every start. COTENANT_DEBUG's stack traces are worth less for it.
        minify: true,
        legalComments: "none",
        external: [NATIVE_PACKAGE],
        define: { __COTENANT_VERSION__: JSON.stringify(version), __COTENANT_BUNDLED__: "true" },
        plugins: [
          ...CHUNKS.map(loadedApart),
          ...(only === undefined ? [] : [leavingOut(isCommandOtherThan(only))]),
        ],
        metafile: true,
        logLevel: "warning",
      }),
    ),
  );
  const inputs = results.flatMap(({ metafile }) => Object.keys(metafile.inputs));
  const names = inputs.map(
    (path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/.exec(path)?.[1],
  );
  return [...new Set(names.filter((name) => name !== undefined))].sort();
}

/** Whether it is the help, or a command that only the table of all of them loads. */
function isCommandOtherThan(only) {
  return (path, importer) =>
    path === "./help" || (importer.endsWith(join("src", "cli", "commands.ts")) && !only.test(path));
}

/**
 * Leaves out some of what is loaded only when it is needed. Whoever needs it waits for ever: another program, in the same
 * process, reads the command line from the start, and ends the process.
 */
function leavingOut(isLeftOut) {
  const contents = 'export function then() { require(__dirname + "/cli.cjs"); }';
  return {
    name: "leaving-out",
    setup(build) {
      build.onResolve({ filter: /^\.\.?\// }, ({ path, kind, importer }) =>
        kind === "dynamic-import" && isLeftOut(path, importer)
          ? { path, namespace: "handed-over" }
          : undefined,
      );
      build.onLoad({ filter: /.*/, namespace: "handed-over" }, () => ({ contents }));
    },
  };
}

/** Takes a chunk from its own file. Whoever loads a program sets its __dirname; `require` may be relative to another folder. */
function loadedApart({ out, loadedAs }) {
  const contents = `module.exports = require(__dirname + "/${out}");`;
  return {
    name: `apart ${out}`,
    setup(build) {
      build.onResolve({ filter: loadedAs }, ({ path, kind }) =>
        kind === "dynamic-import" ? { path, namespace: out } : undefined,
      );
      build.onLoad({ filter: /.*/, namespace: out }, () => ({ contents }));
    },
  };
}

/**
 * Puts the bundle's own id in front of it: compiled code of another build must never be taken for it. Node's own modules
 * are taken as they are: esbuild copies all their names, each time, in case somebody wants a default export.
 */
function nameBundle(path) {
  const text = readFileSync(path, "utf8").replace(/(?<![\w$])[\w$]+\((require\("node:[\w/]+"\))\)/g, "$1");
  const id = createHash("sha256").update(text).digest("hex").slice(0, 16);
  // A function for whoever compiles it with a cache, without a copy of the text; plain Node runs it as it is.
  const parameters = "exports, require, module, __filename, __dirname";
  const called = `(f) => (typeof module === "object" ? f(${parameters}) : f)`;
  writeFileSync(path, `/*${id}*/(${called})((function (${parameters}) {${text}\n}));`);
}

/** All programs of a build have one name together: a daemon and its clients must be of the same. */
function buildId(made) {
  const hash = createHash("sha256");
  for (const { out } of BUNDLES) hash.update(readFileSync(join(made, out)));
  return hash.digest("hex").slice(0, 16);
}

/** Only for this Node; any other compiles the bundles as it always would. */
async function writeCodeCaches(root, made) {
  // A stand-in project has no commands to warm up with.
  if (root !== ROOT) return;
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
  for (const { out, warmUp } of PROGRAMS) {
    const bundle = join(made, out);
    const id = readFileSync(bundle, "latin1").slice(2, 18);
    const target = join(made, "cache", `${id}-${process.version}-${process.arch}`);
    const args = [join(ROOT, "scripts/code-cache.cjs"), bundle, target, ...(warmUp ?? [])];
    await promisify(execFile)(process.execPath, args, { env });
  }
}

/** Without checking: a type error is the type check's to report, and must not keep a developer from running. */
async function declareTypes(root, made) {
  const config = join(made, "tsconfig.json");
  const settings = {
    extends: join(ROOT, "scripts/tsconfig.types.json"),
    compilerOptions: {
      rootDir: join(root, "src"),
      outDir: join(made, "types"),
      typeRoots: [join(ROOT, "node_modules/@types")],
    },
    files: [join(root, LIBRARY)],
  };
  writeFileSync(config, JSON.stringify(settings));
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  try {
    await promisify(execFile)(process.execPath, [tsc, "-p", config], { cwd: root });
  } catch (error) {
    throw new Error(`tsc could not write the declarations:\n${error.stdout || error.message}`);
  }
  rmSync(config);
}

/** The lock's own loader costs 9 ms at start-up; its prebuilt file, loaded directly, nothing. */
function copyNative(made) {
  const from = join(ROOT, "node_modules", NATIVE_PACKAGE);
  const to = join(made, "native");
  mkdirSync(to);
  for (const target of NATIVE) {
    copyFileSync(join(from, "prebuilds", target, `${NATIVE_PACKAGE}.node`), join(to, `${target}.node`));
  }
  copyFileSync(join(from, "LICENSE"), join(to, "LICENSE"));
}

/** Of packages, and of data that others have made and that stands among the sources. */
function copyLicenses(root, packages, made) {
  const others = walk(join(root, "src")).filter(({ path }) => path.endsWith(".licenses.txt"));
  for (const { path } of others) {
    mkdirSync(join(made, "licenses"), { recursive: true });
    copyFileSync(path, join(made, "licenses", basename(path).replace(".licenses", "")));
  }
  for (const name of packages) {
    const folder = join(ROOT, "node_modules", name);
    const license = walk(folder).find(({ path }) => /^licen[cs]e(\.|$)/i.test(relative(folder, path)));
    if (license === undefined) throw new Error(`${name} is bundled but has no licence file`);
    mkdirSync(join(made, "licenses"), { recursive: true });
    copyFileSync(license.path, join(made, "licenses", `${name.replace("/", "-")}.txt`));
  }
}

/**
 * Moves what was made to where it belongs. The stamp goes first and comes last, so that a build killed
 * in between counts as none. A file that did not change stays: a loaded one cannot be replaced everywhere.
 */
function install(made, dist, stamp) {
  rmSync(join(dist, STAMP), { force: true });
  const files = new Set(filesBelow(made));
  for (const file of files) {
    const [from, to] = [join(made, file), join(dist, file)];
    if (existsSync(to) && readFileSync(to).equals(readFileSync(from))) continue;
    mkdirSync(dirname(to), { recursive: true });
    renameSync(from, to);
  }
  for (const file of filesBelow(dist)) {
    if (!file.startsWith(".") && !files.has(file)) rmSync(join(dist, file));
  }
  writeFileSync(join(made, STAMP), stamp);
  renameSync(join(made, STAMP), join(dist, STAMP));
}

function filesBelow(folder) {
  return walk(folder)
    .filter(({ stat }) => !stat.isDirectory())
    .map(({ path }) => relative(folder, path));
}

function isFresh(root, dist) {
  try {
    return (
      readFileSync(join(dist, STAMP), "utf8") === fingerprint(root) && existsSync(join(dist, BUNDLES[0].out))
    );
  } catch {
    return false;
  }
}

/** Names, times and sizes of everything the result depends on: also notices a file that went away. */
function fingerprint(root) {
  const scripts = ["build.mjs", "code-cache.cjs", "project.mjs", "tsconfig.types.json"].map((name) =>
    join(ROOT, "scripts", name),
  );
  const hash = createHash("sha256");
  for (const { path, stat } of [...INPUTS.map((name) => join(root, name)), ...scripts].flatMap(walk)) {
    if (!stat.isDirectory()) hash.update(`${path.replaceAll(sep, "/")}\0${stat.mtimeMs}\0${stat.size}\n`);
  }
  return hash.digest("hex");
}

/** The operating system's lock, because it goes when its process does. */
async function lockBuild(dist) {
  const { waitForLock, unlock } = createRequire(import.meta.url)(NATIVE_PACKAGE);
  const fd = openSync(join(dist, ".lock"), "a+");
  await waitForLock(fd);
  return () => {
    unlock(fd);
    closeSync(fd);
  };
}

async function main() {
  const { values } = parseArgs({ options: { force: { type: "boolean" }, root: { type: "string" } } });
  const root = resolve(values.root ?? ROOT);
  if (!(await ensureBuilt({ root, force: values.force ?? false }))) say("dist is up to date");
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  main().catch((error) => {
    // esbuild has printed its errors already; its message repeats them below the first line.
    say(`build failed: ${error.errors ? error.message.split("\n")[0] : error.message}`);
    process.exitCode = 1;
  });
}
