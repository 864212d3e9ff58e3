import { spawnSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { A, environment, type Room } from "./room";

/** One system call of a publish, or of one of its Gits, that changes the repository. */
export interface Spot {
  readonly call: string;
  /** Below the repository; `<…>` where names are made up. */
  readonly where: string;
  /** Of the calls of this name about this file; of all of the program's own, where the name is made up. */
  readonly nth: number;
  readonly by: "cotenant" | "git";
}

export type Kind = "KILL" | "EIO" | "ENOSPC";

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

  /** Runs a publish undisturbed, and lists its spots. */
  record(requestId: string): { spots: Spot[]; status: number | null; stderr: string } {
    const ended = this.#run(["-f", "-e", `trace=${CHANGES.join(",")}`], requestId);
    const counts = new Map<string, number>();
    const lines = this.#lines();
    const main = lines[0]?.pid;
    const seen = new Map<string, Spot>();
    for (const { pid, call, rest } of lines) {
      const by = pid === main ? "cotenant" : "git";
      const where = this.#where(rest);
      const count = (name: string) => {
        counts.set(name, (counts.get(name) ?? 0) + 1);
        return counts.get(name)!;
      };
      const inAll = by === "cotenant" ? count(`${call} of ours`) : 0;
      if (where === null) continue;
      const there = count(`${call} ${where}`);
      if (call === "openat" && !rest.includes("O_CREAT")) continue;
      const isMadeUp = where.includes("<");
      // What a Git calls its temporary files, nobody can name beforehand.
      if (isMadeUp && by === "git") continue;
      const nth = isMadeUp ? inAll : there;
      seen.set(`${call} ${where} ${nth}`, { call, where, nth, by });
    }
    return { spots: [...seen.values()], status: ended.status, stderr: ended.stderr };
  }

  /** Runs a publish in which one call goes wrong. Not hit: it never came to it. */
  inject({ call, where, nth }: Spot, kind: Kind, requestId: string) {
    const isMadeUp = where.includes("<");
    const what = kind === "KILL" ? "signal=KILL" : `error=${kind}`;
    // Git names some of its files from where it stands.
    const path = isMadeUp ? [] : ["-f", "-P", join(this.#room.repo, where), "-P", where];
    const ended = this.#run(
      [...path, "-e", `trace=${call}`, "-e", `inject=${call}:${what}:when=${nth}`],
      requestId,
    );
    const isHit =
      kind === "KILL"
        ? /\+\+\+ killed by SIGKILL/.test(fs.readFileSync(this.#notes, "utf8")) || ended.signal === "SIGKILL"
        : fs.readFileSync(this.#notes, "utf8").includes("(INJECTED)");
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
