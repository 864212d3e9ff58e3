import { spawnSync } from "node:child_process";
import { closeSync, openSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

/** One system call of a command that touches what cotenant keeps, and how `strace` can name it again. */
export interface Call {
  readonly call: string;
  /** Of all calls of this name on the main thread; or only of those about this file, if its name is always the same. */
  readonly nth: number;
  /** The file it is about, without what differs from run to run. */
  readonly where: string;
  /** Of all calls of this name about that. */
  readonly there: number;
  /** Whether the files, a lock, the disk or the caller know a difference afterwards; otherwise it only looks. */
  readonly changes: boolean;
}

export type Kind = "KILL" | "EIO" | "ENOSPC" | "SHORT";

export interface Ended {
  readonly status: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Everything by which Node, and the native lock, come near a file. */
const CALLS = [
  ..."access openat close read pread64 readlink statx newfstatat getdents64 lseek".split(" "),
  ..."write pwrite64 writev ftruncate rename renameat2 link unlink mkdir rmdir chmod fchmod utimensat".split(
    " ",
  ),
  ..."fcntl fsync fdatasync".split(" "),
];
const LOOKS = new Set("access close read pread64 readlink statx newfstatat getdents64 lseek".split(" "));
const MOST_MS = 30_000;
const ISSUE = "$issue";
const SMALL_ISSUE = "$small-issue";
/** Where a command's words go. */
export const ANSWER = "the answer";

export class Tracer {
  readonly #repo: string;
  readonly #notes: string;
  readonly #answer: string;
  /** The scenario's own issue: a name that stays the same, unlike those that a command makes up. */
  issue = "";

  /** `room`: a place for what strace says, and the command. */
  constructor(repo: string, room: string) {
    this.#repo = repo;
    this.#notes = join(room, "strace");
    this.#answer = join(room, "answer");
  }

  /** Runs the command undisturbed, and lists its calls that matter, in order. */
  record(command: readonly string[], env: NodeJS.ProcessEnv): { calls: Call[]; ended: Ended } {
    const ended = this.#run(["-f", "--seccomp-bpf", "-e", `trace=${CALLS.join(",")}`], command, env);
    const counts = new Map<string, number>();
    const calls: Call[] = [];
    const lines = this.#lines();
    for (const { pid, call, rest } of lines) {
      if (pid !== lines[0]?.pid) continue;
      const where = this.#where(rest);
      const counted = [call, `${call} ${where}`].map((name) => {
        counts.set(name, (counts.get(name) ?? 0) + 1);
        return counts.get(name)!;
      });
      if (where === null || isOther(call, rest)) continue;
      const [inAll, there] = counted as [number, number];
      calls.push({
        call,
        nth: isMasked(where) ? inAll : there,
        where,
        there,
        changes: doesChange(call, rest),
      });
    }
    return { calls, ended };
  }

  /** Runs the command with one call going wrong. Not hit: it ended before that call, or another one was the nth. */
  inject(
    { call, nth, where }: Pick<Call, "call" | "nth" | "where">,
    kind: Exclude<Kind, "SHORT">,
    command: readonly string[],
    env: NodeJS.ProcessEnv,
  ): Ended & { hit: boolean } {
    // With the seccomp filter strace stops the program at this call only; but signals get lost there, and threads and
    // children are followed, each with a count of its own: one that is counted among all would be somebody else's.
    const filter = kind === "KILL" || isMasked(where) ? [] : ["-f", "--seccomp-bpf"];
    const what = kind === "KILL" ? "signal=KILL" : `error=${kind}`;
    // How often Node writes to its own pipes depends on the hour; what is asked of a file does not.
    const path = isMasked(where) ? [] : ["-P", this.#path(where)];
    const ended = this.#run(
      [...filter, ...path, "-e", `trace=${call}`, "-e", `inject=${call}:${what}:when=${nth}`],
      command,
      env,
    );
    const struck =
      kind === "KILL"
        ? ended.signal === "SIGKILL" && this.#lines().at(-1)
        : this.#lines().find(({ rest }) => rest.includes("(INJECTED)"));
    return { ...ended, hit: struck ? this.#where(struck.rest) === where : false };
  }

  /** Runs the command where no file may grow by more than `nth` bytes beyond the size of this one. */
  limit(
    { nth, where }: Pick<Call, "nth" | "where">,
    command: readonly string[],
    env: NodeJS.ProcessEnv,
  ): Ended & { hit: boolean } {
    const most = statSync(join(this.#repo, where)).size + nth;
    const ended = this.#spawn("prlimit", [`--fsize=${most}`, process.execPath, ...command], env);
    return { ...ended, hit: ended.stdout.includes('"EFBIG"') };
  }

  #named(where: string): string {
    return where.replaceAll(ISSUE, this.issue).replaceAll(SMALL_ISSUE, this.issue.toLowerCase());
  }

  #run(options: readonly string[], command: readonly string[], env: NodeJS.ProcessEnv): Ended {
    rmSync(this.#notes, { force: true });
    const all = ["-qq", "-y", "-o", this.#notes, ...options, process.execPath, ...command];
    return this.#spawn("strace", all, env);
  }

  #spawn(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Ended {
    const answer = openSync(this.#answer, "w");
    try {
      const { status, signal, stderr, error } = spawnSync(program, args, {
        cwd: this.#repo,
        env,
        encoding: "utf8",
        stdio: ["ignore", answer, "pipe"],
        timeout: MOST_MS,
      });
      if (error !== undefined) throw error;
      return { status, signal, stdout: readFileSync(this.#answer, "utf8"), stderr };
    } finally {
      closeSync(answer);
    }
  }

  #lines(): { pid: string; call: string; rest: string }[] {
    return [...readFileSync(this.#notes, "utf8").matchAll(/^(?:(\d+) +)?(\w+)\((.*)$/gm)].map(
      ([, pid = "", call, rest]) => ({ pid, call: call!, rest: rest! }),
    );
  }

  #path(where: string): string {
    return where === ANSWER ? this.#answer : join(this.#repo, this.#named(where));
  }

  /** Null when the call is about something else. */
  #where(rest: string): string | null {
    const path = /^\d+<([^>]*)>/.exec(rest)?.[1] ?? /"([^"]*)"/.exec(rest)?.[1] ?? "";
    if (path === this.#answer) return ANSWER;
    const room = dirname(this.#repo);
    // A worktree that a command makes beside the repository.
    if (/^\/(?:back|\.cotenant-)/.test(path.slice(room.length)) && path.startsWith(room))
      return masked(`..${path.slice(room.length)}`);
    if (!path.startsWith(this.#repo)) return null;
    const inside = path.slice(this.#repo.length + 1);
    const isOurs =
      /^(?:\.git\/cotenant|\.cotenant)(?:$|[./])/.test(inside) ||
      /^(?:\.git\/(?:objects|refs\/cotenant)|tree)(?:$|\/)/.test(inside);
    // What is above gets the names of ours: its syncs count too.
    const isAbove =
      (inside === "" || inside === ".git") && /^(?:\d+<|AT_FDCWD<[^>]*>, "[^"]*", O_RDONLY)/.test(rest);
    return isOurs || isAbove
      ? masked(
          this.issue === ""
            ? inside
            : inside.replaceAll(this.issue, ISSUE).replaceAll(this.issue.toLowerCase(), SMALL_ISSUE),
        )
      : null;
  }
}

function isOther(call: string, rest: string): boolean {
  // Close-on-exec flags and the like; the locks are what matters.
  return call === "fcntl" && !rest.includes("F_OFD_SETLK");
}

function doesChange(call: string, rest: string): boolean {
  if (call === "openat") return rest.includes("O_CREAT");
  return !LOOKS.has(call);
}

/** Without what is made anew in every run: ULIDs, instants and random names. */
export function masked(text: string): string {
  return text
    .replace(/(?<=\.git\/objects\/)[0-9a-f]{2}(?:\/\w+)?/g, "<object>")
    .replace(/(?<=\/facts\/(?:latest-snapshot|worktree)\/)[^./]+/g, "<worktree>")
    .replace(/[0-9A-HJKMNP-TV-Z]{26}|(?<=\/)01[0-9a-hjkmnp-tv-z]{24}/g, "<ulid>")
    .replace(/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z/g, "<time>")
    .replace(/[0-9a-f]{12}(?:[0-9a-f]{4})?/g, "<random>");
}

function isMasked(where: string): boolean {
  return where.includes("<");
}
