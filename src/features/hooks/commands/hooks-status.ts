import { execFile } from "node:child_process";
import type { Command, Context } from "../../../cli/grammar/command";
import { columns } from "../../../cli/terminal/render";
import { printable } from "../../../kernel/ids";
import { CANARY } from "../installation/block";
import { type HookState, lookAtHooks, type Scene, statesOf } from "../installation/look";
import { everyPlace } from "../installation/place";
import { howToInstall } from "../installation/plan";
import { readRecord } from "../installation/record";
import { serverProblem } from "../server";
import { type HooksDesk, openHooks, SERVER } from "./hooks";

export const command: Command = {
  usage: "hooks status [--server] [--no-trial]",
  about:
    "Shows where Git looks for hooks here and how each of ours stands: installed, outdated (by an older version, or its\nprogram is gone), foreign (a hook of others that does not call us) or missing. Each installed one is tried: started as\nGit would, it must find the program; nothing else of it runs. With --server, also\nwhether its settings can be read: while they cannot, pushes are refused.",
  flags: { ...SERVER, "no-trial": { meaning: "start nothing" } },
  examples: ["cotenant hooks status", "cotenant hooks status --json"],
  words: { min: 0, max: 0 },
  leavesHooks: true,
  mendsConfig: true,
  async run(context, parsed) {
    const isServer = parsed.has("server");
    const desk = await openHooks(context, isServer);
    const scene = await lookAtHooks(desk.home, desk.names);
    const reports = await Promise.all(
      statesOf(scene).map((state) => report(desk, scene, state, !parsed.has("no-trial"))),
    );
    const { directory, setting, whose } = scene.place;
    const { hidden, isWanted } = await elsewhere(desk, scene);
    const problem = isServer ? await settingsProblem(desk) : null;
    const rows = reports.map(({ hook, state, manager, executable, trial, path }) => [
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
      ...(reports.every(isFine) ? [] : [`next: ${nextStep(context, scene, isServer)}`]),
    ].join("\n");
    const place = { directory, hooks_path: setting, whose };
    const data = { server: isServer, wanted: isWanted, ...place, hooks: reports, hidden };
    return { data: { ...data, settings_problem: problem }, text };
  },
};

interface Report {
  readonly hook: string;
  readonly state: HookState["state"];
  readonly manager: string | null;
  readonly path: string;
  readonly executable: boolean;
  readonly shared: boolean;
  readonly by_hand: boolean;
  readonly program: { readonly path: string; readonly found: boolean } | null;
  readonly trial: "passed" | "failed" | null;
}

async function report({ home }: HooksDesk, scene: Scene, found: HookState, tries: boolean): Promise<Report> {
  const { hook, manager, path, program, trial, isExecutable, isByHand } = found;
  const isThere = async (file: string) => (await home.files.stat(file)) !== null;
  const isFound = program !== null && (await isThere(program.node)) && (await isThere(program.program));
  const isGone = program !== null && !isFound;
  const canTry = tries && trial !== null && isExecutable;
  return {
    hook,
    state: found.state === "installed" && isGone ? "outdated" : found.state,
    manager,
    path,
    executable: isExecutable,
    shared: scene.versioned.has(path),
    by_hand: isByHand,
    program: program === null ? null : { path: program.program, found: isFound },
    trial: canTry ? await tryOut(path, trial, home.worktreeRoot ?? home.gitDir) : null,
  };
}

/** Runs the file up to our first lines, which say whether they find the program, and end there. */
function tryOut(path: string, by: "itself" | "shell", cwd: string): Promise<"passed" | "failed"> {
  const viaShell = by === "shell" || process.platform === "win32";
  const [file, args] = viaShell ? ["sh", [path, CANARY]] : [path, [CANARY]];
  return new Promise((resolve) => {
    const options = { cwd, timeout: 10_000, windowsHide: true };
    const child = execFile(file, args, options, (error, stdout) =>
      resolve(error === null && stdout.startsWith("cotenant ") ? "passed" : "failed"),
    );
    child.stdin?.end();
  });
}

/** Ours in directories that Git does not use, or no longer. */
async function elsewhere({ platform, home, names, workspace }: HooksDesk, { place }: Scene) {
  const record = workspace === null ? null : await readRecord(platform, workspace.repository.controlDir);
  const used = new Set<string>([place.directory]);
  const hidden: string[] = [];
  for (const other of await everyPlace(home, record?.directories ?? [])) {
    if (used.has(other.directory) || other.setting !== null) continue;
    for (const { state, isByHand, path } of statesOf(await lookAtHooks(home, names, other)))
      if ((state === "installed" || state === "outdated") && !isByHand) hidden.push(path);
  }
  return { hidden, isWanted: record !== null };
}

async function settingsProblem({
  home: { git, gitDir },
}: HooksDesk): Promise<{ readonly code: string; readonly message: string; readonly hint: string } | null> {
  const problem = await serverProblem(git, { cwd: gitDir, env: { GIT_DIR: gitDir } });
  if (problem === null) return null;
  return { code: problem.code, message: printable(problem.message, 400), hint: problem.hint };
}

function isFine({ state, executable, trial }: Report): boolean {
  return state === "installed" && executable && trial !== "failed";
}

function nextStep({ program }: Context, scene: Scene, isServer: boolean): string {
  if (isServer) return "cotenant hooks install --server";
  return howToInstall(scene, { node: process.execPath, program });
}
