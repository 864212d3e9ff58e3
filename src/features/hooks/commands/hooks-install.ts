import type { Command, Context } from "../../../cli/grammar/command";
import { verbatim } from "../../../cli/terminal/render";
import { parentOf } from "../../../identity/path-text";
import { printable } from "../../../kernel/ids";
import { readable } from "../../../platform/binary-text";
import { MEANINGS } from "../installation/block";
import type { EntryPlan, HookPlan } from "../installation/plan";
import { serverRemarks } from "../server";
import { howFrom, installHooks, openHooks, SERVER } from "./hooks";

const WORDS: Readonly<Record<HookPlan["action"], string>> = {
  created: "new",
  added: "added to the script there",
  wrapped: "new; runs the hook that was there",
  updated: "brought up to date",
  unchanged: "as it was",
};

export const command: Command = {
  usage: "hooks install [--shared] [--force] [--server] [--print]",
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
    const isServer = parsed.has("server");
    const isDry = parsed.has("print");
    const desk = await openHooks(context, isServer);
    const { plan, directory } = await installHooks(context, desk, { ...howFrom(parsed), isDry });
    const { entry } = plan;
    const hasChanged = plan.hooks.some(({ write }) => write !== null) || entry?.write != null;
    const lines = isDry
      ? [...plan.hooks.flatMap(printed), ...(entry === null ? [] : printedEntry(entry))]
      : [
          hasChanged ? `hooks installed in ${placesOf(plan.hooks)}` : "hooks are installed; nothing changed",
          ...(hasChanged ? plan.hooks.map(line) : []),
          ...(entry?.write == null ? [] : [entryLine(entry)]),
        ];
    const said = [...plan.remarks, ...(isServer ? await aboutServer(context, desk.home.gitDir) : [])];
    const remarks = said.map((remark) => `note: ${remark}`);
    return {
      data: {
        printed: isDry,
        changed: hasChanged && !isDry,
        server: isServer,
        directory,
        hooks: plan.hooks.map((hook) => hookJson(hook, isDry)),
        entry: entry === null ? null : entryJson(entry, isDry),
        remarks: said,
      },
      text: context.quiet && !isDry ? "" : [...lines, ...remarks].join("\n"),
    };
  },
};

function aboutServer(context: Context, gitDir: string): Promise<string[]> {
  return serverRemarks(context.surroundings().git, { cwd: gitDir, env: { GIT_DIR: gitDir } });
}

/** Not always where Git looks: husky passes on to committed files beside. */
function placesOf(hooks: readonly HookPlan[]): string {
  return [...new Set(hooks.map(({ path }) => parentOf(path) ?? path))]
    .map((path) => printable(path, 400))
    .join(" and ");
}

function hookJson({ hook, action, path, manager, isShared, write }: HookPlan, isDry: boolean) {
  return {
    hook,
    action,
    path,
    manager,
    shared: isShared,
    kept: write?.kept?.path ?? null,
    content: isDry && write !== null ? readable(write.text) : null,
  };
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
  return `  ${hook.padEnd(18)}  ${WORDS[action]}${by}: ${MEANINGS[hook]}\n  ${" ".repeat(18)}  ${printable(path, 400)}`;
}

function printed({ path, action, write }: HookPlan): string[] {
  if (write === null) return [`# ${printable(path, 400)}: ${WORDS[action]}`];
  return [
    `# ${printable(path, 400)}: ${WORDS[action]}`,
    ...(write.kept === null
      ? []
      : [`# the hook that was there is kept as ${printable(write.kept.path, 400)}`]),
    ...content(write.text),
  ];
}

function printedEntry({ path, write }: EntryPlan): string[] {
  const what = write === null ? WORDS.unchanged : write.was === null ? "new" : "added to what is there";
  return [`# ${printable(path, 400)}: ${what}`, ...(write === null ? [] : content(write.text))];
}

function content(text: string): string[] {
  return [
    ...readable(text)
      .replace(/\n$/, "")
      .split("\n")
      .map((line) => verbatim(line)),
    "",
  ];
}
