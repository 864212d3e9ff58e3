import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ROOT } from "./source";

const BUILD = join(ROOT, "scripts/build.mjs");

/** A project of its own with the two entry points, so that nothing here touches the real dist. */
let root: string;

function write(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "cotenant-build-"));
  write("package.json", '{ "name": "cotenant", "version": "7.8.9" }');
  write("src/index.ts", 'import type { Thing } from "./thing";\nexport const thing: Thing = { size: 1 };\n');
  write("src/thing.ts", "export interface Thing {\n  readonly size: number;\n}\n");
  write(
    "src/cli/main.ts",
    'console.log(__COTENANT_VERSION__);\nif (process.argv[2]) import("./commands/slow");\n',
  );
  write("src/features/hooks/entry/quick-hook.ts", "export const isNothingToDo = () => false;\n");
  write("src/features/guard/entry/quick-guard.ts", "export const beginGuard = () => null;\n");
  write("src/features/guard/shell/walk.ts", "export const readCommand = () => null;\n");
  write("src/features/hooks/installation/mend.ts", "export const mendHooks = () => null;\n");
  write("src/features/harnesses/real-canary/real-canary.ts", "export const runRealCanaries = () => [];\n");
  write("src/daemon/start-for-hooks.ts", "export const startForHooks = () => {};\n");
  write("src/features/guard/entry/guard-main.ts", 'console.log("guarded");\n');
  write(
    "src/cli/commands/slow.ts",
    'import { parse } from "smol-toml";\nconsole.log("loaded", parse("a = 1").a);\n',
  );
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

const build = (...args: string[]) =>
  spawnSync(process.execPath, [BUILD, "--root", root, ...args], { encoding: "utf8" });
const cli = (...args: string[]) =>
  spawnSync(process.execPath, [join(root, "dist/cli.cjs"), ...args], { encoding: "utf8" });

describe("the build", () => {
  it("makes the command line, the library, its types, the native locks and the licences", () => {
    const built = build();
    expect(built.status, built.stderr).toBe(0);
    expect(cli().stdout).toBe("7.8.9\n");
    expect(cli("slow").stdout).toBe("7.8.9\nloaded 1\n");
    expect(readFileSync(join(root, "dist/types/index.d.ts"), "utf8")).toContain("thing: Thing");
    expect(readdirSync(join(root, "dist/native")).sort()).toEqual([
      "LICENSE",
      "darwin-arm64.node",
      "darwin-x64.node",
      "linux-arm64.node",
      "linux-x64.node",
      "win32-arm64.node",
      "win32-x64.node",
    ]);
    expect(readdirSync(join(root, "dist/licenses"))).toEqual(["smol-toml.txt"]);
  });

  it("does nothing when nothing changed, and notices changed, new and removed files", () => {
    expect(build().stderr).toContain("built");
    expect(build().stderr).toContain("up to date");
    write("src/cli/main.ts", 'console.log("changed");\n');
    expect(build().stderr).toContain("built");
    expect(cli().stdout).toBe("changed\n");
    expect(existsSync(join(root, "dist/licenses/smol-toml.txt"))).toBe(false);
    rmSync(join(root, "src/cli/commands/slow.ts"));
    expect(build().stderr).toContain("built");
    expect(build("--force").stderr).toContain("built");
  });

  it("goes on after a build that was killed", async () => {
    const dist = join(root, "dist");
    const isBuilding = () => existsSync(dist) && readdirSync(dist).some((name) => name.startsWith(".new-"));
    // It never gets to read this one, so it is at work when it is killed, with everything that it has started.
    const packageFile = join(root, "package.json");
    const text = readFileSync(packageFile);
    rmSync(packageFile);
    expect(spawnSync("mkfifo", [packageFile]).status).toBe(0);
    const killed = spawn(process.execPath, [BUILD, "--root", root], { stdio: "ignore", detached: true });
    const closed = once(killed, "close");
    while (killed.exitCode === null && !isBuilding()) await new Promise((resolve) => setTimeout(resolve, 1));
    process.kill(-killed.pid!, "SIGKILL");
    await closed;
    rmSync(packageFile);
    writeFileSync(packageFile, text);
    expect(isBuilding()).toBe(true);
    expect(build().stderr).toContain("built");
    expect(readdirSync(join(root, "dist")).filter((name) => name.startsWith(".new-"))).toEqual([]);
    expect(cli().stdout).toBe("7.8.9\n");
  });

  it("is done once by builds that start together, and never takes the bundle away", async () => {
    expect(build().status).toBe(0);
    write("src/cli/main.ts", 'console.log("second");\n');
    const builders = Array.from({ length: 4 }, () => spawn(process.execPath, [BUILD, "--root", root]));
    const ended = Promise.all(builders.map(said));
    let over = false;
    ended.finally(() => {
      over = true;
    });
    while (!over) {
      expect(["7.8.9\n", "second\n"]).toContain(cli().stdout);
      await new Promise((resolve) => setImmediate(resolve));
    }
    const words = await ended;
    expect(words.filter((text) => text.includes("built"))).toHaveLength(1);
    expect(words.filter((text) => text.includes("up to date"))).toHaveLength(3);
    expect(cli().stdout).toBe("second\n");
  });

  it("says which entry point is missing, and leaves the last build alone", () => {
    expect(build().status).toBe(0);
    rmSync(join(root, "src/index.ts"));
    const failed = build();
    expect(failed.status).toBe(1);
    expect(failed.stderr).toBe("build failed: cannot build: src/index.ts is missing\n");
    expect(cli().stdout).toBe("7.8.9\n");
  });

  it("says where the mistake is, and leaves the last build alone", () => {
    expect(build().status).toBe(0);
    write("src/cli/main.ts", 'import "./nowhere";\n');
    const failed = build();
    expect(failed.status).toBe(1);
    expect(failed.stderr).toContain('Could not resolve "./nowhere"');
    expect(cli().stdout).toBe("7.8.9\n");
  });
});

async function said(child: ChildProcess): Promise<string> {
  let text = "";
  child.stderr?.on("data", (chunk) => {
    text += chunk;
  });
  await once(child, "close");
  return text;
}

describe("bin/cotenant", () => {
  const bin = () => spawnSync(process.execPath, [join(root, "bin/cotenant")], { encoding: "utf8" });

  beforeEach(() => write("bin/cotenant", readFileSync(join(ROOT, "bin/cotenant"), "utf8")));

  it("says in one line what to do when there is no bundle", () => {
    const ran = bin();
    expect(ran.status).toBe(10);
    expect(ran.stderr).toMatch(/^cotenant: not built yet: run 'npm run build' in [^\n]+\n$/);
  });

  it("does not blame the build for a module missing inside the bundle", () => {
    write("dist/cli.cjs", 'require("./gone.cjs");');
    expect(bin().stderr).toContain("gone.cjs");
    expect(bin().stderr).not.toContain("npm run build");
  });
});
