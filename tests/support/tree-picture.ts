import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import * as fs from "node:fs";

/**
 * Everything in a tree that a snapshot promises to keep, read without any code of ours: kind, permissions and content of
 * each entry, by the bytes of its name. Git's own directory and the worktree's identity are nobody's business.
 */
export function treePicture(root: string, leaveOut: RegExp = /^$/): Record<string, string> {
  const seen: Record<string, string> = {};
  const visit = (directory: string, prefix: string) => {
    const at = (name: string) => Buffer.from(`${directory}/${name}`, "latin1");
    for (const name of fs.readdirSync(Buffer.from(directory, "latin1"), {
      encoding: "latin1" as BufferEncoding,
    })) {
      const path = `${prefix}${name}`;
      if (path === ".git" || path === ".cotenant" || leaveOut.test(path)) continue;
      const stat = fs.lstatSync(at(name));
      const mode = (stat.mode & 0o777).toString(8);
      if (stat.isSymbolicLink()) seen[path] = `link ${fs.readlinkSync(at(name), { encoding: "latin1" })}`;
      else if (stat.isDirectory()) {
        seen[path] = `directory ${mode}`;
        visit(`${directory}/${name}`, `${path}/`);
      } else {
        const digest = createHash("sha256")
          .update(fs.readFileSync(at(name)))
          .digest("hex");
        seen[path] = `file ${mode} ${digest}`;
      }
    }
  };
  visit(Buffer.from(root).toString("latin1"), "");
  return seen;
}

/** What Git knows of a worktree that nobody but its user may change. */
export function gitPicture(root: string): Record<string, string> {
  const git = (...args: string[]) =>
    execFileSync("git", args, { cwd: root, encoding: "latin1", stdio: ["ignore", "pipe", "ignore"] });
  return {
    index: git("ls-files", "-s", "-t", "-z"),
    stash: git("stash", "list"),
    refs: git("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags", "refs/stash"),
    head: fs.readFileSync(`${git("rev-parse", "--absolute-git-dir").trim()}/HEAD`, "utf8"),
  };
}
