import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import type { HookedRepo } from "./hooks";

const MODULES = fileURLToPath(new URL("../../node_modules", import.meta.url));
const HUSKY = path.join(MODULES, "husky/bin.js");
const LEFTHOOK = path.join(MODULES, `lefthook-${process.platform}-${process.arch}/bin/lefthook`);
/** From Debian: the name alone may be another one's, with another Python. */
const PRE_COMMIT = "/usr/bin/pre-commit";

/** A manager of hooks as people use it: the real program. */
export interface RealManager {
  /** The project's own files, which are committed. */
  prepare(hooked: HookedRepo): void;
  /** What makes it write its hooks, the first time and again. */
  install(hooked: HookedRepo): void;
  /** What its users do later, each of which writes its hooks anew. */
  readonly later: Readonly<Record<string, (hooked: HookedRepo) => void>>;
}

const THEIRS = `echo theirs >> "$JOURNAL"`;

function run(hooked: HookedRepo, file: string, ...args: string[]): void {
  const env = { ...process.env, NO_COLOR: "1", JOURNAL: hooked.journal };
  execFileSync(file, args, { cwd: hooked.repo.root, stdio: "pipe", env });
}

export const MANAGERS: Readonly<Record<string, RealManager>> = {
  husky: {
    prepare(hooked) {
      const scripts = { prepare: `"${process.execPath}" "${HUSKY}"` };
      hooked.repo.write("package.json", JSON.stringify({ name: "p", version: "1.0.0", scripts }));
      hooked.repo.write(".husky/pre-commit", `${THEIRS}\n`);
    },
    install: (hooked) => run(hooked, process.execPath, HUSKY),
    later: {
      "husky again": (hooked) => run(hooked, process.execPath, HUSKY),
      "npm install": (hooked) =>
        run(hooked, "npm", "install", "--offline", "--no-audit", "--no-fund", "--loglevel=error"),
    },
  },
  lefthook: {
    prepare(hooked) {
      const run = `      run: ${THEIRS}\n`;
      hooked.repo.write("lefthook.yml", `pre-commit:\n  parallel: true\n  commands:\n    theirs:\n${run}`);
      hooked.program("lefthook", `#!/bin/sh\nexec "${LEFTHOOK}" "$@"\n`);
    },
    install: (hooked) => run(hooked, LEFTHOOK, "install"),
    later: {
      "lefthook install": (hooked) => run(hooked, LEFTHOOK, "install"),
      "lefthook install --force": (hooked) => run(hooked, LEFTHOOK, "install", "--force"),
      "another configuration": (hooked) => {
        const file = path.join(hooked.repo.root, "lefthook.yml");
        fs.appendFileSync(file, "commit-msg:\n  commands:\n    more:\n      run: echo more\n");
        run(hooked, LEFTHOOK, "run", "pre-commit", "--force");
      },
    },
  },
  "pre-commit": {
    prepare(hooked) {
      const hook = `      - {id: theirs, name: theirs, language: system, entry: "sh -c '${THEIRS.replaceAll('"', "")}'", pass_filenames: false, always_run: true, stages: [commit]}\n`;
      hooked.repo.write(".pre-commit-config.yaml", `repos:\n  - repo: local\n    hooks:\n${hook}`);
    },
    install: (hooked) => run(hooked, PRE_COMMIT, "install"),
    later: {
      "pre-commit install": (hooked) => run(hooked, PRE_COMMIT, "install"),
      "pre-commit install --overwrite": (hooked) => run(hooked, PRE_COMMIT, "install", "--overwrite"),
      "another type": (hooked) => run(hooked, PRE_COMMIT, "install", "--hook-type", "pre-push"),
    },
  },
};
