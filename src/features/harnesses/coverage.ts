import type { HarnessName } from "../../identity/harness";

/** Ways in which an agent may change a file. */
export const WAYS = [
  "edit",
  "create",
  "delete",
  "several",
  "notebook",
  "redirect",
  "file_tool",
  "script",
  "outside",
] as const;
export type Way = (typeof WAYS)[number];

export const WAY_WORDS: Readonly<Record<Way, string>> = {
  edit: "edits a file",
  create: "makes a file",
  delete: "deletes a file",
  several: "changes several files at once",
  notebook: "edits a notebook",
  redirect: "shell: echo … > file",
  file_tool: "shell: sed -i, mv, cp, rm, git checkout",
  script: "shell: a program of its own",
  outside: "outside of the harness",
};

/**
 * `before`: refused before anything is written. `after`: written, then found and reported. `open`: nobody notices before
 * the commit. `none`: the harness has no such tool.
 */
export type Coverage = "before" | "after" | "open" | "none";

/** What a canary found out about one file of settings. */
export interface CanaryReport {
  readonly isAlive: boolean;
  /** What went wrong, in words; null when nothing did. */
  readonly why: string | null;
  readonly coverage: Readonly<Record<Way, Coverage>>;
}

export function nothingCovered(): Record<Way, Coverage> {
  const none = Object.fromEntries(WAYS.map((way) => [way, "none"])) as Record<Way, Coverage>;
  return { ...none, outside: "open" };
}

/** One event as the harness would send it, about a tool that has not run yet or has. */
export interface Trial {
  readonly way: Way;
  readonly tool: string;
  readonly input: unknown;
}

export interface Target {
  /** Absolute. */
  readonly repository: string;
  /** Below it: somebody else holds it. */
  readonly held: string;
}

interface Tools {
  readonly edit: string;
  readonly create: string;
  readonly remove: string | null;
  readonly patch: string | null;
  readonly notebook: string | null;
  readonly shell: string;
  /** How the path of a file is called. */
  readonly path: string;
  readonly patchText: string;
}

const TOOLS: Readonly<Record<HarnessName, Tools>> = {
  claude: tools({ edit: "Edit", create: "Write", notebook: "NotebookEdit", shell: "Bash" }),
  codex: tools({
    edit: "apply_patch",
    create: "apply_patch",
    patch: "apply_patch",
    shell: "Bash",
    patchText: "command",
  }),
  cursor: tools({ edit: "Write", create: "Write", remove: "Delete", shell: "Shell" }),
  gemini: tools({ edit: "replace", create: "write_file", shell: "run_shell_command" }),
  copilot: tools({ edit: "edit", create: "create", shell: "bash", path: "path" }),
  opencode: tools({
    edit: "edit",
    create: "write",
    patch: "apply_patch",
    shell: "bash",
    path: "filePath",
    patchText: "patchText",
  }),
  qwen: tools({
    edit: "edit",
    create: "write_file",
    notebook: "notebook_edit",
    shell: "run_shell_command",
  }),
  pi: tools({ edit: "edit", create: "write", shell: "bash", path: "path" }),
};

function tools(some: Partial<Tools> & Pick<Tools, "edit" | "create" | "shell">): Tools {
  return { remove: null, patch: null, notebook: null, path: "file_path", patchText: "patch", ...some };
}

/** What to try with a harness: a way that is not in it has no tool there. */
export function trialsFor(harness: HarnessName, { repository, held }: Target): Trial[] {
  const all = TOOLS[harness];
  const file = `${repository}/${held}`;
  const patch = (...changes: string[]) => ({
    [all.patchText]: ["*** Begin Patch", ...changes, "*** End Patch", ""].join("\n"),
  });
  const update = `*** Update File: ${held}\n@@\n-old\n+new`;
  const byPatch = all.edit === all.patch;
  const edit = byPatch ? patch(update) : { [all.path]: file, old_string: "old", new_string: "new" };
  const create = byPatch ? patch(`*** Add File: ${held}\n+new`) : { [all.path]: file, content: "new\n" };
  const shell = (way: Way, command: string): Trial => ({ way, tool: all.shell, input: { command } });
  const removal = all.patch === null ? { [all.path]: file } : patch(`*** Delete File: ${held}`);
  const remover = all.patch ?? all.remove;
  return [
    { way: "edit", tool: all.edit, input: edit },
    { way: "create", tool: all.create, input: create },
    ...(remover === null ? [] : [{ way: "delete", tool: remover, input: removal } as const]),
    ...(all.patch === null
      ? []
      : [
          {
            way: "several",
            tool: all.patch,
            input: patch("*** Add File: free-too.txt\n+new", update),
          } as const,
        ]),
    ...(all.notebook === null
      ? []
      : [
          { way: "notebook", tool: all.notebook, input: { notebook_path: file, new_source: "new" } } as const,
        ]),
    shell("redirect", `echo new > ${held}`),
    shell("file_tool", `sed -i s/old/new/ ${held}`),
    // What it does is in a file that nobody reads before it runs.
    shell("script", "sh ./change.sh"),
  ];
}

/** The same for a file that nobody holds: this must go through. */
export function freeTrial(harness: HarnessName, repository: string): Trial {
  const [edit] = trialsFor(harness, { repository, held: "free.txt" });
  return edit!;
}

/**
 * What came of running a harness's own program. `protocol_changed`: it never asked the model, or called no hook, so that
 * nothing can be said of the guard. `not_triable`: it is there, and cannot be run without an account.
 */
export type RealOutcome = "passed" | "failed" | "protocol_changed" | "not_installed" | "not_triable";

export interface RealReport {
  readonly harness: HarnessName;
  readonly outcome: RealOutcome;
  /** Where the program is; null where there is none. */
  readonly program: string | null;
  /** As the program itself says; null where it does not. */
  readonly version: string | null;
  /** What went wrong, or what keeps it from being tried; null when it passed. */
  readonly why: string | null;
}

/** Whoever names a harness wants to see it pass. Of the others only one that ran can fail. */
export function isWell({ outcome }: RealReport, isNamed: boolean): boolean {
  if (outcome === "passed") return true;
  return !isNamed && (outcome === "not_installed" || outcome === "not_triable");
}

export function wasTried({ outcome }: RealReport): boolean {
  return outcome !== "not_installed" && outcome !== "not_triable";
}
