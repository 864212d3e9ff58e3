import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { AgentProgram, Installed, Package } from "./program";

/** A slow connection takes minutes for the largest of them, which has 160 MB. */
const MOST_MS = 15 * 60_000;

/** Nothing was wrong with what we asked for: there was nobody to ask, or the newest version needs what is not there. */
export class NoRegistry extends Error {}

const UNREACHABLE =
  /^(?:E(?:NOTFOUND|AI_AGAIN|CONN\w+|TIMEDOUT|NETUNREACH|HOSTUNREACH)|ERR_SOCKET\w*|FETCH_ERROR)$/;

/**
 * The packages of a program, from the npm registry if they are not there yet. They stay between runs, one folder per
 * program, in the user's cache or in the folder that TEST_HARNESSES names. Scripts of packages are not run.
 */
export async function install(program: AgentProgram, isLatest: boolean): Promise<Installed> {
  // Two ways of running the same package need it once.
  const folder = join(cacheFolder(), isLatest ? `${program.harness}-latest` : program.harness);
  const wanted = program.packages;
  if (isLatest || !wanted.every((one) => versionIn(folder, one) === one.version)) {
    mkdirSync(folder, { recursive: true });
    // Without a project of its own here, npm would look for one above.
    writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
    const names = wanted.map(
      ({ name, version }, at) => `${name}@${isLatest && at === 0 ? "latest" : version}`,
    );
    const args = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", folder, ...names];
    await npm(args, isLatest);
  }
  const version = versionIn(folder, wanted[0]!);
  if (version === null) throw new Error(`npm installed no ${wanted[0]!.name}`);
  return { folder, version };
}

function cacheFolder(): string {
  const given = process.env["TEST_HARNESSES"];
  if (given !== undefined && given !== "") return given;
  return join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "cotenant-harnesses");
}

function versionIn(folder: string, { name }: Package): string | null {
  try {
    const text = readFileSync(join(folder, "node_modules", name, "package.json"), "utf8");
    return (JSON.parse(text) as { version: string }).version;
  } catch {
    return null;
  }
}

function npm(args: readonly string[], isLatest: boolean): Promise<void> {
  // As the person has it who started this: `npm run verify` clears it for everything else.
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: process.env["TEST_EXTRA_CA_CERTS"] };
  const child = spawn("npm", args, { stdio: ["ignore", "ignore", "pipe"], timeout: MOST_MS, env });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (status) => {
      const code = /^npm error code (\S+)/m.exec(said)?.[1] ?? `exit ${status}`;
      if (status === 0) resolve();
      else if (UNREACHABLE.test(code)) reject(new NoRegistry(`the npm registry is out of reach (${code})`));
      else if (isLatest && code === "ETARGET")
        reject(new NoRegistry("the npm registry lacks a package that it needs"));
      else reject(new Error(`npm could not install it: ${code}\n${said}`));
    });
  });
}
