import * as fs from "node:fs";
import * as path from "node:path";
import { readPlainFile } from "../../../platform/node/plain-file";
import { bootId, startTimeOf } from "../../../platform/node/processes";
import {
  type CommitNote,
  gitMark,
  gitPid,
  INDEX_HASH_BYTES,
  indexMark,
  noteName,
  readNote,
} from "../note-format";

/**
 * Whether a hook of a commit has nothing to do, as `pre-commit` of the same commit found out. A file of its own, because
 * most commits are like that, and whoever commits waits for it. Whatever is unusual is left to the program.
 */
export function isNothingToDo([hook]: readonly string[]): boolean {
  try {
    if (hook === "prepare-commit-msg") {
      const note = noteAt(process.cwd(), "staged")?.note;
      return note !== undefined && note.trailers.length === 0 && !note.isMadeOfOthers;
    }
    if (hook !== "post-commit") return false;
    const found = noteAt(process.cwd(), "committed");
    if (found === null || !found.note.isClean || found.note.needsSettling) return false;
    fs.unlinkSync(found.file);
    return true;
  } catch {
    return false;
  }
}

function noteAt(cwd: string, stage: "staged" | "committed"): { note: CommitNote; file: string } | null {
  const pid = gitPid(process.env);
  const started = pid === null ? null : startTimeOf(pid);
  const git = pid === null || started === null ? null : gitMark(bootId(), pid, started);
  if (pid === null || git === null) return null;
  const gitDir = gitDirOf(path.resolve(cwd, process.env["GIT_DIR"] ?? ".git"));
  const file = path.join(commonDirOf(gitDir), "cotenant", noteName(pid));
  const text = readPlainFile(file);
  const index =
    stage === "staged" ? markOf(process.env["GIT_INDEX_FILE"] ?? path.join(gitDir, "index")) : null;
  if (stage === "staged" && index === null) return null;
  const note = readNote(text, { git, index });
  return note === null ? null : { note, file };
}

/** A linked worktree has a file that names it. */
function gitDirOf(place: string): string {
  if (fs.statSync(place).isDirectory()) return place;
  const named = /^gitdir: (.+?)\r?\n?$/.exec(readPlainFile(place));
  if (named === null) throw new Error("no Git directory");
  return path.resolve(path.dirname(place), named[1]!);
}

function commonDirOf(gitDir: string): string {
  const named = process.env["GIT_COMMON_DIR"];
  if (named !== undefined) return path.resolve(named);
  try {
    return path.resolve(gitDir, readPlainFile(path.join(gitDir, "commondir")).trim());
  } catch {
    return gitDir;
  }
}

function markOf(index: string): string | null {
  const fd = fs.openSync(index, "r");
  try {
    const { size, mtimeMs } = fs.fstatSync(fd);
    const hash = Buffer.alloc(INDEX_HASH_BYTES);
    fs.readSync(fd, hash, 0, INDEX_HASH_BYTES, size - INDEX_HASH_BYTES);
    return indexMark({ size, mtimeMs }, hash);
  } finally {
    fs.closeSync(fd);
  }
}
