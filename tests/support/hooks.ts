import * as fs from "node:fs";
import * as path from "node:path";
import { type Ran, run } from "./program";
import { pictureOf, TestRepo } from "./repo";
import { scratch } from "./scratch";

/** A repository with odd names on its way, in which commits are made as people make them. */
export class HookedRepo {
  readonly repo: TestRepo;
  /** Where hooks of others write down that they ran. */
  readonly journal: string;
  readonly #bin: string;

  private constructor(repo: TestRepo, journal: string, bin: string) {
    this.repo = repo;
    this.journal = journal;
    this.#bin = bin;
  }

  static async make(): Promise<HookedRepo> {
    const room = scratch();
    const repo = TestRepo.make(path.join(room, "mit Lücken", "it's ré po"));
    const [journal, bin] = [path.join(room, "journal"), path.join(room, "bin")];
    fs.mkdirSync(bin);
    repo.write("a.txt");
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "first");
    await repo.prepare("agent:a", "init");
    return new HookedRepo(repo, journal, bin);
  }

  at(repo: TestRepo): HookedRepo {
    return new HookedRepo(repo, this.journal, this.#bin);
  }

  /** A hook file, below the worktree. */
  hook(file: string, text: string, mode = 0o755): void {
    const whole = path.join(this.repo.root, file);
    fs.mkdirSync(path.dirname(whole), { recursive: true });
    fs.writeFileSync(whole, text);
    fs.chmodSync(whole, mode);
  }

  /** A program that hooks of others start. */
  program(name: string, text: string): void {
    fs.writeFileSync(path.join(this.#bin, name), text, { mode: 0o755 });
  }

  /** What hooks of others see: where to write, and whether to fail. */
  git(agent: string, args: readonly string[], env: Record<string, string | undefined> = {}): Promise<Ran> {
    return run(["git", ...args], {
      cwd: this.repo.root,
      env: {
        PATH: `${this.#bin}:${process.env["PATH"]}`,
        COTENANT_AGENT_ID: agent,
        JOURNAL: this.journal,
        ...env,
      },
    });
  }

  #commits = 0;

  /** Changes a file and commits it. */
  async commit(agent: string, env: Record<string, string | undefined> = {}, file = "a.txt"): Promise<Ran> {
    this.repo.write(file, `${agent} ${++this.#commits} ${Math.random()}\n`);
    await this.git(agent, ["add", file]);
    return this.git(agent, ["commit", "--message", `by ${agent}`], env);
  }

  /** What others' hooks have written since the last look. */
  journalled(): string[] {
    const lines = fs.existsSync(this.journal)
      ? fs.readFileSync(this.journal, "utf8").split("\n").slice(0, -1)
      : [];
    fs.rmSync(this.journal, { force: true });
    return lines;
  }

  /** Every hook file there may be, with content and mode. */
  hooks(): Record<string, string> {
    const all: Record<string, string> = {};
    for (const name of [".git/hooks", ".husky", ".githooks"]) {
      const directory = path.join(this.repo.root, name);
      if (!fs.existsSync(directory)) continue;
      all[name] = "directory";
      for (const [file, seen] of Object.entries(pictureOf(directory))) all[`${name}/${file}`] = seen;
    }
    return all;
  }

  states(ran: Ran): Record<string, string> {
    const hooks = ran.data["hooks"] as { hook: string; state: string; trial: string | null }[];
    return Object.fromEntries(hooks.map(({ hook, state, trial }) => [hook, `${state} ${trial}`]));
  }
}

const NOTE = (what: string) => `echo "${what}" >> "$JOURNAL"`;
const MAY_FAIL = `[ -z "\${THEIRS_FAIL-}" ] || exit 3`;
const HUSKY_H = [
  "#!/usr/bin/env sh",
  '[ "$HUSKY" = "2" ] && set -x',
  'n=$(basename "$0")',
  's=$(dirname "$(dirname "$0")")/$n',
  '[ ! -f "$s" ] && exit 0',
  `[ "\${HUSKY-}" = "0" ] && exit 0`,
  'sh -e "$s" "$@"',
  "c=$?",
  "exit $c",
  "",
].join("\n");
const HUSKY_SH = [
  "#!/usr/bin/env sh",
  'if [ -z "$husky_skip_init" ]; then',
  '  readonly hook_name="$(basename -- "$0")"',
  "  readonly husky_skip_init=1",
  "  export husky_skip_init",
  '  sh -e "$0" "$@"',
  '  exitCode="$?"',
  "  exit $exitCode",
  "fi",
  "",
].join("\n");

/** Pre-commit hooks that may be there, each as its maker writes it. Each notes its name, and fails when THEIRS_FAIL is set. */
export const OTHERS: Readonly<Record<string, (hooked: HookedRepo) => void>> = {
  "a shell script": (hooked) => {
    hooked.hook(".git/hooks/pre-commit", `#!/bin/sh\n${NOTE("theirs")}\n${MAY_FAIL}\nexit 0`);
  },
  "a shell script with set -eu, and another mode": (hooked) => {
    hooked.hook(
      ".git/hooks/pre-commit",
      `#!/bin/bash -eu\nset -o pipefail\n${NOTE("theirs")}\n${MAY_FAIL}\n`,
      0o750,
    );
  },
  "a script without a first line of that sort": (hooked) => {
    hooked.hook(".git/hooks/pre-commit", `${NOTE("theirs")}\n${MAY_FAIL}\n`, 0o555);
  },
  "a program in another language": (hooked) => {
    const text = [
      "#!/usr/bin/env node",
      'require("node:fs").appendFileSync(process.env.JOURNAL, "theirs\\n");',
      "process.exit(process.env.THEIRS_FAIL ? 3 : 0);",
    ];
    hooked.hook(".git/hooks/pre-commit", text.join("\n"));
  },
  "a link to a committed script": (hooked) => {
    hooked.hook("scripts/check", `#!/bin/sh\n${NOTE("theirs")}\n${MAY_FAIL}\n`);
    fs.mkdirSync(path.join(hooked.repo.root, ".git/hooks"), { recursive: true });
    fs.symlinkSync("../../scripts/check", path.join(hooked.repo.root, ".git/hooks/pre-commit"));
  },
  "husky 4": (hooked) => {
    const head =
      "#!/bin/sh\n# husky\n\n# Hook created by Husky v4.3.8 (https://github.test/typicode/husky#readme)\n";
    hooked.hook(".git/hooks/pre-commit", `${head}. "$(dirname "$0")/husky.sh"\n`);
    hooked.hook(".git/hooks/husky.sh", `${NOTE("theirs")}\n${MAY_FAIL}\n`, 0o644);
  },
  "husky 9": (hooked) => {
    hooked.hook(".husky/_/.gitignore", "*", 0o644);
    hooked.hook(".husky/_/h", HUSKY_H, 0o644);
    hooked.hook(".husky/_/husky.sh", "", 0o644);
    for (const name of ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-push"])
      hooked.hook(`.husky/_/${name}`, '#!/usr/bin/env sh\n. "$(dirname "$0")/h"');
    hooked.hook(".husky/pre-commit", `${NOTE("theirs")}\n${MAY_FAIL}\n`, 0o644);
    hooked.repo.git("config", "core.hooksPath", ".husky/_");
    hooked.repo.git("add", ".husky");
  },
  lefthook: (hooked) => {
    const text = [
      "#!/bin/sh",
      "",
      'if [ "$LEFTHOOK" = "0" ]; then',
      "  exit 0",
      "fi",
      "",
      "call_lefthook()",
      "{",
      "  if lefthook -h >/dev/null 2>&1",
      "  then",
      '    lefthook "$@"',
      "  fi",
      "}",
      "",
      'call_lefthook run "pre-commit" "$@"',
      "",
    ];
    hooked.hook(".git/hooks/pre-commit", text.join("\n"));
    hooked.program("lefthook", `#!/bin/sh\n[ "$1" = -h ] && exit 0\n${NOTE("theirs")}\n${MAY_FAIL}\n`);
    hooked.repo.write("lefthook.yml", "pre-commit:\n  commands:\n    lint:\n      run: true\n");
  },
  "pre-commit": (hooked) => {
    const text = [
      "#!/usr/bin/env bash",
      "# File generated by pre-commit: https://pre-commit.test",
      "# ID: 138fd403232d2ddd5efb44317e38bf03",
      "",
      "# start templated",
      "INSTALL_PYTHON=/nowhere/python3",
      "ARGS=(hook-impl --config=.pre-commit-config.yaml --hook-type=pre-commit)",
      "# end templated",
      "",
      'HERE="$(cd "$(dirname "$0")" && pwd)"',
      'ARGS+=(--hook-dir "$HERE" -- "$@")',
      "",
      'if [ -x "$INSTALL_PYTHON" ]; then',
      `    exec "$INSTALL_PYTHON" -mpre_commit "\${ARGS[@]}"`,
      "elif command -v pre-commit > /dev/null; then",
      `    exec pre-commit "\${ARGS[@]}"`,
      "fi",
      "",
    ];
    hooked.hook(".git/hooks/pre-commit", text.join("\n"));
    const program = [
      "#!/bin/sh",
      `hook=\${3#--hook-type=}; dir=$5; shift 6; status=0`,
      'if [ -x "$dir/$hook.legacy" ]; then PRE_COMMIT_RUNNING_LEGACY=1 "$dir/$hook.legacy" "$@" || status=$?; fi',
      '[ "$status" = 0 ] || exit "$status"',
      NOTE("theirs"),
      MAY_FAIL,
      "",
    ];
    hooked.program("pre-commit", program.join("\n"));
    hooked.repo.write(".pre-commit-config.yaml", "repos: []\n");
  },
  overcommit: (hooked) => {
    const text =
      "#!/usr/bin/env ruby\n# Entrypoint for Overcommit hook integration.\nhook_type = File.basename($0)\n";
    hooked.hook(".git/hooks/pre-commit", text);
    hooked.hook(".git/hooks/overcommit-hook", text);
    // Where there is no Ruby: what matters is the name that the file is called by.
    hooked.program(
      "ruby",
      `#!/bin/sh\n[ "\${1##*/}" = pre-commit ] || exit 64\n${NOTE("theirs")}\n${MAY_FAIL}\n`,
    );
  },
};

export function husky8(hooked: HookedRepo): void {
  hooked.hook(".husky/_/.gitignore", "*", 0o644);
  hooked.hook(".husky/_/husky.sh", HUSKY_SH, 0o644);
  const head = '#!/usr/bin/env sh\n. "$(dirname -- "$0")/_/husky.sh"\n\n';
  hooked.hook(".husky/pre-commit", `${head}${NOTE("theirs")}\n${MAY_FAIL}\n`);
  hooked.repo.git("config", "core.hooksPath", ".husky");
  hooked.repo.git("add", ".husky");
}
