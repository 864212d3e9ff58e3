import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { ObjectDatabase } from "../../src/git/database";
import type { ObjectFormat } from "../../src/git/object-name";
import { nodeGit } from "../../src/platform/git-node";
import { nodePlatform } from "../../src/platform/node/node";
import { scratch } from "../support/scratch";

export const platform = nodePlatform();
export const git = nodeGit();

/** A real repository, and our own reading and writing of it. */
export class Scene {
  readonly root: string;
  readonly place: {
    worktreeRoot: string;
    commonDir: string;
    config: { objectFormat: ObjectFormat; refFormat: "files" };
  };

  constructor(format: ObjectFormat = "sha1", root = path.join(scratch(), "repo")) {
    this.root = root;
    fs.mkdirSync(root, { recursive: true });
    this.git("init", "--quiet", `--object-format=${format}`);
    this.place = {
      worktreeRoot: root,
      commonDir: path.join(root, ".git"),
      config: { objectFormat: format, refFormat: "files" },
    };
  }

  database(): ObjectDatabase {
    return new ObjectDatabase(platform, git, this.place);
  }

  git(...args: string[]): string {
    return this.feed("", ...args);
  }

  feed(input: string | Buffer, ...args: string[]): string {
    return execFileSync("git", args, {
      cwd: this.root,
      input,
      encoding: "utf8",
      stdio: ["pipe", "pipe", "pipe"],
    }).trimEnd();
  }

  write(file: string, content: string): void {
    const whole = path.join(this.root, file);
    fs.mkdirSync(path.dirname(whole), { recursive: true });
    fs.writeFileSync(whole, content);
  }

  /** The id of a commit of everything in the worktree. */
  commit(message = "a commit"): string {
    this.git("add", "--all");
    this.git("commit", "--quiet", "--allow-empty", "--message", message);
    return this.git("rev-parse", "HEAD");
  }
}
