import { spawnSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { A, environment, type Room } from "./room";

/** One system call of a publish, or of one of its Gits, that changes the repository. */
export interface Spot {
  readonly call: string;
  /** Below the repository; `<…>` where names are made up. */
  readonly where: string;
  /** Of the calls of this name about this file, by one thread; of all of that thread, where the name is made up. */
  readonly nth: number;
  readonly by: "cotenant" | "git";
  /** Contents and directories are synced by a thread of ours. */
  readonly isOffThread: boolean;
}

export type Kind = "KILL" | "EIO" | "ENOSPC";

function isMadeUp(where: string): boolean {
  return where.includes("<");
}

const CHANGES =
  "write pwrite64 writev ftruncate rename renameat2 link linkat unlink unlinkat mkdir mkdirat rmdir chmod fchmod fsync fdatasync openat".split(
    " ",
  );
const MOST_MS = 90_000;

export class PublishTracer {
  readonly #room: Room;
  readonly #notes: string;

  constructor(room: Room) {
    this.#room = room;
    this.#notes = join(room.repo, "../strace");
  }

  /** Runs a publish undisturbed, and lists its spots, in order. */
  record(requestId: string): { spots: Spot[]; status: number | null; stderr: string } {
    const ended = this.#run(["-f", "-e", `trace=execve,${CHANGES.join(",")}`], requestId);
    const counts = new Map<string, number>();
    const lines = this.#lines();
    const main = lines[0]?.pid;
    // Whoever became another program is a Git; all others are threads of ours.
    const gits = new Set(
      lines.filter(({ pid, call }) => call === "execve" && pid !== main).map(({ pid }) => pid),
    );
    const seen = new Map<string, Spot>();
    for (const { pid, call, rest } of lines) {
      if (call === "execve") continue;
      const by = gits.has(pid) ? "git" : "cotenant";
      const where = this.#where(rest);
      // As strace counts: each thread by itself.
      const [inAll, there] = [`${pid} ${call}`, `${pid} ${call} ${where}`].map((name) => {
        counts.set(name, (counts.get(name) ?? 0) + 1);
        return counts.get(name)!;
      }) as [number, number];
      if (where === null || (call === "openat" && !rest.includes("O_CREAT"))) continue;
      // What a Git calls its temporary files, nobody can name beforehand.
      if (isMadeUp(where) && by === "git") continue;
      const nth = isMadeUp(where) ? inAll : there;
      seen.set(`${call} ${where} ${nth}`, { call, where, nth, by, isOffThread: pid !== main });
    }
    return { spots: [...seen.values()], status: ended.status, stderr: ended.stderr };
  }

  /** Runs a publish in which one call goes wrong. Not hit: it never came to it, or another call was the nth. */
  inject({ call, where, nth, isOffThread }: Spot, kind: Kind, requestId: string) {
    const what = kind === "KILL" ? "signal=KILL" : `error=${kind}`;
    const follow = isOffThread || !isMadeUp(where) ? ["-f"] : [];
    // Git names some of its files from where it stands.
    const path = isMadeUp(where) ? [] : ["-P", join(this.#room.repo, where), "-P", where];
    const ended = this.#run(
      [...follow, ...path, "-e", `trace=${call}`, "-e", `inject=${call}:${what}:when=${nth}`],
      requestId,
    );
    const notes = fs.readFileSync(this.#notes, "utf8");
    const isStruck =
      kind === "KILL"
        ? /\+\+\+ killed by SIGKILL/.test(notes) || ended.signal === "SIGKILL"
        : notes.includes("(INJECTED)");
    // Where only the number of the call says which it is, it may have been another one this time.
    const struck =
      kind === "KILL" ? this.#lines().at(-1) : this.#lines().find(({ rest }) => rest.includes("(INJECTED)"));
    const isHit = isStruck && (!isMadeUp(where) || this.#where(struck?.rest ?? "") === where);
    return { ...ended, isHit };
  }

  #run(options: readonly string[], requestId: string) {
    fs.rmSync(this.#notes, { force: true });
    const command = [process.execPath, this.#room.program, ...this.#room.publishArgs(A, requestId)];
    const { status, signal, stdout, stderr, error } = spawnSync(
      "strace",
      ["-q", "-y", "-o", this.#notes, ...options, ...command],
      {
        cwd: this.#room.repo,
        // Each new Git meets with the same fate: a few of them will do.
        env: { ...environment(A), COTENANT_PUBLISH_RETRIES: "2" },
        encoding: "utf8",
        timeout: MOST_MS,
      },
    );
    if (error !== undefined) throw error;
    return { status, signal, stdout, stderr };
  }

  #lines(): { pid: string; call: string; rest: string }[] {
    return [...fs.readFileSync(this.#notes, "utf8").matchAll(/^(?:(\d+) +)?(\w+)\((.*)$/gm)].map(
      ([, pid = "", call, rest]) => ({ pid, call: call!, rest: rest! }),
    );
  }

  /** Null when the call is about nothing in the repository. */
  #where(rest: string): string | null {
    const paths = [...rest.matchAll(/<([^<>]*)>|"([^"]*)"/g)].map(([, open, text]) => open ?? text ?? "");
    return paths.map((path) => this.#inside(path)).find((path) => path !== null && path !== "") ?? null;
  }

  #inside(path: string): string | null {
    const { repo } = this.#room;
    const whole = path.startsWith(".git/") ? `${repo}/${path}` : path;
    if (!whole.startsWith(`${repo}/.git`)) return null;
    return whole
      .slice(repo.length + 1)
      .replace(/(?<=\/facts\/publish\/)[^.]+/g, "<id>")
      .replace(/tmp_obj_\w+/g, "<temporary>")
      .replace(/-[0-9a-f]{12}(?=\.)/g, "-<random>");
  }
}
