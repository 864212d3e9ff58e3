import * as fs from "node:fs";
import * as path from "node:path";
import { realGit } from "./git-in-front";

/** A `git` that kills whoever has started it: before or after the nth command that it is given, or the first of a kind. */
export class DeadlyGit {
  readonly #room: string;
  readonly #counter: string;

  constructor(room: string) {
    this.#room = path.join(room, "deadly");
    this.#counter = path.join(room, "deadly-count");
    fs.mkdirSync(this.#room);
    const script = [
      "#!/bin/sh",
      'n=$(($(cat "$COUNTER" 2>/dev/null || echo 0) + 1))',
      'case "$DEADLY" in',
      '  [0-9]*) echo "$n" > "$COUNTER" ;;',
      '  *) n=0; for word; do [ "$word" = "$DEADLY" ] && n="$DEADLY"; done ;;',
      "esac",
      '[ "$n" = "$DEADLY" ] && [ "$WHEN" = before ] && { kill -9 $PPID; exit 1; }',
      `"${realGit()}" "$@"`,
      "status=$?",
      '[ "$n" = "$DEADLY" ] && [ "$WHEN" = after ] && kill -9 $PPID',
      "exit $status",
    ];
    fs.writeFileSync(path.join(this.#room, "git"), `${script.join("\n")}\n`, { mode: 0o755 });
  }

  /** For the environment of the command that is to die. */
  env(when: "before" | "after", which: number | string): Record<string, string> {
    fs.rmSync(this.#counter, { force: true });
    return {
      PATH: `${this.#room}:${process.env["PATH"]}`,
      COUNTER: this.#counter,
      DEADLY: String(which),
      WHEN: when,
    };
  }

  /** How many Git commands the last one came to. */
  get used(): number {
    return Number(fs.readFileSync(this.#counter, "utf8"));
  }
}
