import { execFile } from "node:child_process";
import type { Command, Context, Parsed } from "../../../cli/grammar/command";
import { installedFrom } from "../../../cli/grammar/installed";
import { columns, verbatim } from "../../../cli/terminal/render";
import { parentOf } from "../../../identity/path-text";
import { printable } from "../../../kernel/ids";
import { readable } from "../../../platform/binary-text";
import {
  type EntryPlan,
  type HookPlan,
  type HookReport,
  hooksStatus,
  installHooks,
  MEANINGS,
  openHooks,
  type Removal,
  type StartHook,
  uninstallHooks,
} from "../operations";

const SERVER = { server: { meaning: "a bare repository's hook, pre-receive" } };

function requestFrom(context: Context, parsed: Parsed) {
  return { shared: parsed.has("shared"), force: parsed.has("force"), program: installedFrom(context) };
}

const INSTALLED: Readonly<Record<HookPlan["action"], string>> = {
  created: "new",
  added: "added to the script there",
  wrapped: "new; runs the hook that was there",
  updated: "brought up to date",
  unchanged: "as it was",
};

export const install: Command = {
  about:
    "Has Git call cotenant before and after each commit and before each push, in all worktrees of this clone. Hooks that\nare there already go on running: shell scripts get a few marked lines, others are kept beside. Where Git looks\n(core.hooksPath), and husky, lefthook, pre-commit and overcommit, are respected. Doing it again changes nothing;\n'hooks uninstall' brings back every byte.",
  flags: {
    shared: { meaning: "also change hooks that are committed, for everybody (.husky/, .githooks/)" },
    force: { meaning: "also where other repositories may find their hooks" },
    ...SERVER,
    print: { meaning: "show what would be written, and write nothing" },
  },
  examples: ["cotenant hooks install --print", "cotenant hooks install"],
  words: { min: 0, max: 0 },
  leavesHooks: true,
  async run(context, parsed) {
    const isDry = parsed.has("print");
    const at = await openHooks(context, parsed.has("server"));
    const { plan, directory, remarks } = await installHooks(at, { ...requestFrom(context, parsed), isDry });
    const { entry, hooks } = plan;
    const hasChanged = hooks.some(({ write }) => write !== null) || entry?.write != null;
    const lines = isDry
      ? [...hooks.flatMap(printed), ...(entry === null ? [] : printedEntry(entry))]
      : [
          hasChanged ? `hooks installed in ${placesOf(hooks)}` : "hooks are installed; nothing changed",
          ...(hasChanged ? hooks.map(line) : []),
          ...(entry?.write == null ? [] : [entryLine(entry)]),
        ];
    return {
      data: {
        printed: isDry,
        changed: hasChanged && !isDry,
        server: parsed.has("server"),
        directory,
        hooks: hooks.map((hook) => hookJson(hook, isDry)),
        entry: entry === null ? null : entryJson(entry, isDry),
        remarks,
      },
      text:
        context.quiet && !isDry ? "" : [...lines, ...remarks.map((remark) => `note: ${remark}`)].join("\n"),
    };
  },
};

/** Not always where Git looks: husky passes on to committed files beside. */
function placesOf(hooks: readonly HookPlan[]): string {
  return [...new Set(hooks.map(({ path }) => parentOf(path) ?? path))]
    .map((path) => printable(path, 400))
    .join(" and ");
}

function hookJson({ hook, action, path, manager, isShared, write }: HookPlan, isDry: boolean) {
  const content = isDry && write !== null ? readable(write.text) : null;
  return { hook, action, path, manager, shared: isShared, kept: write?.kept?.path ?? null, content };
}

function entryJson({ path, isShared, write }: EntryPlan, isDry: boolean) {
  const action = write === null ? "unchanged" : write.was === null ? "created" : "added";
  return { path, action, shared: isShared, content: isDry && write !== null ? readable(write.text) : null };
}

function entryLine({ path }: EntryPlan): string {
  return `  ${"lefthook".padEnd(18)}  calls it too, also when it has written its hooks anew\n  ${" ".repeat(18)}  ${printable(path, 400)}`;
}

function line({ hook, action, path, manager }: HookPlan): string {
  const by = manager === null || manager === "script" ? "" : ` (${manager})`;
  return `  ${hook.padEnd(18)}  ${INSTALLED[action]}${by}: ${MEANINGS[hook]}\n  ${" ".repeat(18)}  ${printable(path, 400)}`;
}

function printed({ path, action, write }: HookPlan): string[] {
  const kept =
    write?.kept == null ? [] : [`# the hook that was there is kept as ${printable(write.kept.path, 400)}`];
  return [`# ${printable(path, 400)}: ${INSTALLED[action]}`, ...kept, ...contentOf(write)];
}

function printedEntry({ path, write }: EntryPlan): string[] {
  const what = write === null ? INSTALLED.unchanged : write.was === null ? "new" : "added to what is there";
  return [`# ${printable(path, 400)}: ${what}`, ...contentOf(write)];
}

function contentOf(write: HookPlan["write"]): string[] {
  if (write === null) return [];
  const lines = readable(write.text).replace(/\n$/, "").split("\n");
  return [...lines.map((line) => verbatim(line)), ""];
}

const TAKEN_OUT: Readonly<Record<Removal["action"], string>> = {
  removed: "removed",
  restored: "restored as it was",
  taken_out: "our lines taken out",
};

export const uninstall: Command = {
  about:
    "Takes cotenant out of this clone's hooks, wherever they are. Every file is afterwards as it was before, to the byte;\nwhat somebody changed in it meanwhile stays.",
  flags: {
    shared: { meaning: "also from hooks that are committed, for everybody" },
    force: { meaning: "also where other repositories may find their hooks" },
    ...SERVER,
  },
  examples: ["cotenant hooks uninstall"],
  words: { min: 0, max: 0 },
  leavesHooks: true,
  mendsConfig: true,
  async run(context, parsed) {
    const at = await openHooks(context, parsed.has("server"));
    const { removals, left } = await uninstallHooks(at, requestFrom(context, parsed));
    const text = [
      removals.length === 0 ? "no hooks of cotenant's to take out" : "taken out:",
      ...removals.map(({ path, action }) => `  ${printable(path, 400)}: ${TAKEN_OUT[action]}`),
      ...(left.length === 0 ? [] : ["left:"]),
      ...left.map(({ path, why }) => `  ${printable(path, 400)}: ${why}`),
    ].join("\n");
    return {
      data: {
        changed: removals.length > 0,
        hooks: removals.map(({ hook, path, action }) => ({ hook, path, action })),
        left,
      },
      text: context.quiet ? "" : text,
    };
  },
};

export const status: Command = {
  about:
    "Shows where Git looks for hooks here and how each of ours stands: installed, outdated (by an older version, or its\nprogram is gone), foreign (a hook of others that does not call us) or missing. Each installed one is tried: started as\nGit would, it must find the program; nothing else of it runs. With --server, also\nwhether its settings can be read: while they cannot, pushes are refused.",
  flags: { ...SERVER, "no-trial": { meaning: "start nothing" } },
  examples: ["cotenant hooks status", "cotenant hooks status --json"],
  words: { min: 0, max: 0 },
  leavesHooks: true,
  mendsConfig: true,
  async run(context, parsed) {
    const at = await openHooks(context, parsed.has("server"));
    const { program } = requestFrom(context, parsed);
    const start = parsed.has("no-trial") ? null : startHook;
    const found = await hooksStatus(at, { program, start });
    const { directory, setting, whose, isWanted, hidden, problem, next } = found;
    const hooks = found.hooks.map(reportJson);
    const rows = hooks.map(({ hook, state, manager, executable, trial, path }) => [
      hook,
      state + (state !== "missing" && !executable ? ", not executable" : ""),
      manager ?? "",
      trial ?? "",
      printable(path, 400),
    ]);
    const text = [
      whose === "nowhere"
        ? `Git runs no hooks here: core.hooksPath is "${printable(setting?.value ?? "", 200)}"`
        : `Git looks in ${printable(directory, 400)}${setting === null ? "" : ` (core.hooksPath, ${setting.scope})`}`,
      columns(context.terminal, ["HOOK", "STATE", "BY", "TRIAL", "FILE"], rows),
      ...hidden.map((path) => `hidden: ${printable(path, 400)}: Git does not look there`),
      ...(problem === null
        ? []
        : [`pre-receive cannot judge pushes, and refuses them: ${problem.message}`, `next: ${problem.hint}`]),
      ...(next === null ? [] : [`next: ${next}`]),
    ].join("\n");
    const place = { directory, hooks_path: setting, whose };
    const data = { server: parsed.has("server"), wanted: isWanted, ...place, hooks, hidden };
    return { data: { ...data, settings_problem: problem }, text };
  },
};

function reportJson({ hook, state, manager, path, program, ...report }: HookReport) {
  return {
    hook,
    state,
    manager,
    path,
    executable: report.isExecutable,
    shared: report.isShared,
    by_hand: report.isByHand,
    program: program === null ? null : { path: program.program, found: report.isProgramThere },
    trial: report.outcome,
  };
}

const startHook: StartHook = (path, { by, args, cwd }) => {
  const viaShell = by === "shell" || process.platform === "win32";
  const [file, words] = viaShell ? ["sh", [path, ...args]] : [path, [...args]];
  return new Promise((resolve) => {
    const options = { cwd, timeout: 10_000, windowsHide: true };
    const child = execFile(file, words, options, (error, stdout) => resolve(error === null ? stdout : null));
    child.stdin?.end();
  });
};
