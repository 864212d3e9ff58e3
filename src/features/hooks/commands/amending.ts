import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { gitPid } from "../note-format";

/** Managers of hooks stand between Git and us. */
const MOST_PARENTS = 6;

/**
 * Whether the `git commit` that runs this hook amends: Git does not tell its hooks when there is a new message. Null where
 * that cannot be seen.
 */
export function isAmending(): boolean | null {
  const words = gitWords();
  return words === null
    ? null
    : words.includes("commit") && words.some((word) => /^--am(?:e(?:nd?)?)?$/.test(word));
}

/** Whether `git revert` runs this hook: it calls no `pre-commit`. */
export function isReverting(): boolean {
  const words = gitWords() ?? [];
  return words.includes("revert") && !words.includes("commit");
}

/** What Git was asked for that runs this hook; null where that cannot be seen. */
function gitWords(): string[] | null {
  for (let pid = gitPid(process.env) ?? process.ppid, up = 0; pid > 1 && up < MOST_PARENTS; up++) {
    const found = look(pid);
    if (found === null) return null;
    const [program = "", ...words] = found.words;
    if (/(?:^|\/)git(?:\.exe)?$/.test(program)) return words;
    pid = found.parent;
  }
  return null;
}

function look(pid: number): { words: string[]; parent: number } | null {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    const parent = /^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return { words, parent: Number(parent ?? 0) };
  } catch {
    return process.platform === "linux" ? null : askPs(pid);
  }
}

function askPs(pid: number): { words: string[]; parent: number } | null {
  try {
    const line = execFileSync("ps", ["-o", "ppid=,args=", "-p", String(pid)], { encoding: "utf8" }).trim();
    const [parent, ...words] = line.split(/\s+/);
    return { words, parent: Number(parent) };
  } catch {
    return null;
  }
}
