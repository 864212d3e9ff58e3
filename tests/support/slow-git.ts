import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { scratch } from "./scratch";

/**
 * The real Git, behind a door: when it is called with words that a pattern fits, for the first time, a shell command runs
 * first. So a test can have something happen at one certain point of a command, without waiting and hoping.
 */
export function gitWithDoor(
  words: string,
  then: string,
): { readonly env: Record<string, string>; readonly room: string } {
  const room = scratch();
  const bin = path.join(room, "bin");
  fs.mkdirSync(bin);
  const real = execFileSync("/bin/sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
  const script = [
    "#!/bin/sh",
    `case "$*" in *${quoted(words)}*)`,
    `  if mkdir ${quoted(path.join(room, "was-here"))} 2>/dev/null; then { ${then}; } </dev/null >/dev/null 2>&1; fi`,
    "esac",
    `exec ${quoted(real)} "$@"`,
    "",
  ];
  fs.writeFileSync(path.join(bin, "git"), script.join("\n"), { mode: 0o755 });
  return { env: { PATH: `${bin}:${process.env["PATH"]}`, ROOM: room }, room };
}

/** Waits at the door until `go` is in the room. */
export const UNTIL_GO = 'touch "$ROOM/waiting"; while [ ! -e "$ROOM/go" ]; do sleep 0.02; done';
/** The program that called Git dies at once, and Git with it. */
export const KILL_CALLER = "kill -9 $PPID; exit 1";
/** The program that called Git dies at once, and Git goes on. */
export const KILL_ONLY_CALLER = "kill -9 $PPID";

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
