import * as fs from "node:fs";
import * as path from "node:path";

/** Where the machine's own Git is. */
export function realGit(): string {
  return process.env["PATH"]!.split(":")
    .map((folder) => path.join(folder, "git"))
    .find((file) => fs.existsSync(file))!;
}

/** For a command's environment: a `git` that does these lines of shell first, and then what it was asked to. */
export function gitInFront(room: string, ...lines: readonly string[]): Record<string, string> {
  const folder = path.join(room, "in-front");
  fs.mkdirSync(folder, { recursive: true });
  const script = ["#!/bin/sh", ...lines, `exec "${realGit()}" "$@"`];
  fs.writeFileSync(path.join(folder, "git"), `${script.join("\n")}\n`, { mode: 0o755 });
  return { PATH: `${folder}:${process.env["PATH"]}` };
}
