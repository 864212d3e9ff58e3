import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { runCommandLine } from "../../../src/cli/program";
import { ERRORS, isErrorCode } from "../../../src/errors/registry";
import { nodeGit } from "../../../src/platform/git-node";
import { nodePlatform } from "../../../src/platform/node/node";
import { NODE_TOOLS } from "../../../src/platform/node/this-machine";
import type { Platform } from "../../../src/platform/platform";
import { removeTree } from "../../support/remove-tree";
import { ROOT } from "../bundle";

export const PAGE = 4096;

export interface Said {
  readonly status: number;
  readonly code: string | null;
  readonly data: Record<string, unknown>;
  readonly words: string;
}

export const ENVIRONMENT = {
  PATH: process.env["PATH"] ?? "",
  LC_ALL: "C.UTF-8",
  COTENANT_AGENT_ID: "agent:a",
};

/** A repository on a disk of its own, as large as it is told. */
export class DiskRoom {
  readonly mounted: string;
  readonly root: string;
  readonly control: string;
  readonly home: string;
  /** One that can be claimed. */
  issue = "";
  readonly #program: string;

  constructor(place: string, options: string, program: string) {
    this.mounted = place;
    this.root = join(place, "repo");
    this.home = join(place, "home");
    this.control = join(this.root, ".git/cotenant");
    this.#program = program;
    mkdirSync(place, { recursive: true });
    execFileSync("mount", ["--types", "tmpfs", "--options", options, "tmpfs", place]);
    chmodSync(place, 0o755);
    execFileSync("git", ["init", "--quiet", this.root]);
    for (const surplus of ["hooks", "info"]) removeTree(join(this.root, ".git", surplus));
  }

  async prepare(): Promise<void> {
    await this.runHere("init");
    const { data, words: said } = await this.runHere("issue create --title work");
    const issue = data["issue"] as { id: string } | undefined;
    if (issue === undefined) throw new Error(`no issue: ${said}`);
    this.issue = issue.id;
  }

  close(): void {
    execFileSync("umount", ["--lazy", this.mounted]);
  }

  get log(): string {
    return join(this.control, "claims.jsonl");
  }

  logBytes(): Buffer {
    return existsSync(this.log) ? readFileSync(this.log) : Buffer.alloc(0);
  }

  /** The program in a process of its own. */
  run(line: string, before: readonly string[] = []): Said {
    const command = [...before, process.execPath, this.#program, ...words(line), "--json"];
    const ran = spawnSync(command[0]!, command.slice(1), {
      cwd: this.root,
      env: { ...ENVIRONMENT, HOME: this.home },
      encoding: "utf8",
      timeout: 60_000,
    });
    return saidIn(ran.status ?? -1, ran.stdout, ran.stderr);
  }

  /** The same without the process: for what is done while there is room, and for looking at what is written. */
  async runHere(line: string, platform: Platform = nodePlatform()): Promise<Said> {
    let [out, err] = ["", ""];
    const status = await runCommandLine([...words(line), "--json"], {
      terminal: {
        isTerminal: false,
        color: false,
        columns: 100,
        out: (text) => {
          out += text;
          return true;
        },
        err: (text) => {
          err += text;
        },
      },
      surroundings: () => ({
        platform,
        git: nodeGit(),
        tools: NODE_TOOLS,
        env: { COTENANT_AGENT_ID: "agent:a" },
        cwd: this.root,
        home: this.home,
        isTerminal: false,
      }),
    });
    return saidIn(status, out, err);
  }

  /** Leases as a reader sees them now. */
  async leases(): Promise<string[]> {
    const { status, data, words: said } = await this.runHere("status");
    if (status !== 0) throw new Error(`status fails: ${said}`);
    return (data["leases"] as { key: string; fencing_token: number; agent_id: string }[])
      .map(({ key, fencing_token: token, agent_id: agent }) => `${key} #${token} ${agent}`)
      .sort();
  }

  /** Takes all the room there is, to the last byte, but for these pages; answers how to give it back. */
  fill(pagesLeft: number): () => void {
    const file = join(this.mounted, "filler");
    const spare = join(this.mounted, "spare");
    const kept = openSync(spare, "w");
    if (pagesLeft > 0) writeSync(kept, Buffer.alloc(pagesLeft * PAGE, 1));
    closeSync(kept);
    const fd = openSync(file, "w");
    for (let size = 1 << 16; size >= 1; size >>= 1) while (takes(fd, size));
    closeSync(fd);
    rmSync(spare);
    return () => rmSync(file);
  }

  /** The same with names: so many files may still be made. */
  fillNames(left: number): () => void {
    const folder = join(this.mounted, "names");
    mkdirSync(folder);
    let made = 0;
    while (makes(join(folder, String(made)))) made++;
    for (let i = 0; i < left && i < made; i++) rmSync(join(folder, String(i)));
    return () => removeTree(folder);
  }
}

function takes(fd: number, size: number): boolean {
  try {
    return writeSync(fd, Buffer.alloc(size, 1)) > 0;
  } catch {
    return false;
  }
}

function makes(path: string): boolean {
  try {
    closeSync(openSync(path, "wx"));
    return true;
  } catch {
    return false;
  }
}

/** `claim acquire X --reason two_words`: underscores in values are not blanks, there is no need. */
function words(line: string): string[] {
  return line.split(" ");
}

export function saidIn(status: number, out: string, err: string): Said {
  const said = `exit ${status}: ${out}${err}`.slice(0, 1_000);
  try {
    const document = JSON.parse(out) as { data?: Record<string, unknown>; error?: { code: string } };
    return { status, code: document.error?.code ?? null, data: document.data ?? {}, words: said };
  } catch {
    return { status, code: "no JSON", data: {}, words: said };
  }
}

/** What is wrong with how a command ended, whatever it was to do; null when nothing is. */
export function misbehaviour({ status, code, words: said }: Said): string | null {
  if (/\\n\s+at .*:\d+/.test(said)) return `a stack trace: ${said}`;
  if (status === 0) return null;
  if (code === null || !isErrorCode(code)) return `no code: ${said}`;
  if (code === "E_INTERNAL" || ERRORS[code].exit !== status) return `${code}: ${said}`;
  return said.includes('"hint":""') ? `no next step: ${said}` : null;
}

/** A copy of what was built that every user may run, wherever the sources are. */
export function programForAll(folder: string): string {
  for (const part of ["bin", "dist"]) cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  execFileSync("chmod", ["-R", "a+rX", folder]);
  return join(folder, "bin/cotenant");
}
