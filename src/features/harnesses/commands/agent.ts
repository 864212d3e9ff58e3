import type { Command, Context, Flag, Parsed } from "../../../cli/grammar/command";
import { installedFrom } from "../../../cli/grammar/installed";
import { interruptibly } from "../../../cli/terminal/interrupts";
import { columns, verbatim } from "../../../cli/terminal/render";
import { chooseWay, guardDaemon, guardPlaceIn, settleDoor } from "../../../daemon/guard-way";
import { CotenantError, usageError } from "../../../errors/cotenant-error";
import { HARNESS_NAMES, type HarnessName } from "../../../identity/harness";
import { printable } from "../../../kernel/ids";
import { HARNESSES } from "../../guard/harness";
import {
  addAgents,
  agentsAround,
  type Coverage,
  type Examined,
  examineAgents,
  type HarnessLevel,
  harnessNamed,
  listAgents,
  ownLevel,
  projectLevel,
  type RealReport,
  type Removal,
  realWord,
  type Seen,
  type SitePlan,
  setUpRemarks,
  takeOutAgents,
  VIA_NAMES,
  viaName,
  WAY_WORDS,
  WAYS,
} from "../operations";

const WHERE: Readonly<Record<string, Flag>> = {
  all: { meaning: "every harness" },
  user: { meaning: "in your own settings, for all your projects" },
  shared: { meaning: "in settings that are committed, for everybody" },
};

const NAMES = {
  words: { min: 0, max: HARNESS_NAMES.length },
  completes: HARNESS_NAMES.map(() => ({ choices: HARNESS_NAMES })),
} as const;

async function levelFrom(context: Context, parsed: Parsed): Promise<HarnessLevel> {
  if (!parsed.has("user")) return projectLevel(await context.workspace());
  if (parsed.has("shared"))
    throw new CotenantError("E_USAGE", "--user and --shared contradict each other", {
      hint: "--user is for you in all projects, --shared for everybody in this one",
    });
  return ownLevel(context.surroundings());
}

function harnessesFrom(parsed: Parsed): readonly HarnessName[] {
  const { words } = parsed;
  if (parsed.has("all")) {
    if (words.length === 0) return HARNESS_NAMES;
    throw new CotenantError("E_USAGE", "--all names every harness already", {
      hint: `leave out --all, or "${printable(words.join(" "), 100)}"`,
    });
  }
  if (words.length === 0)
    throw usageError("which harness?", `name one or more of ${HARNESS_NAMES.join(", ")}, or give --all`);
  return harnessesOrAll(parsed);
}

/** Those that were named, or every one. */
function harnessesOrAll({ words }: Parsed): readonly HarnessName[] {
  return words.length === 0 ? HARNESS_NAMES : [...new Set(words.map(harnessNamed))];
}

const WRITTEN: Readonly<Record<SitePlan["action"], string>> = {
  created: "new",
  added: "added to what is there",
  updated: "brought up to date",
  unchanged: "as it was",
};

export const install: Command = {
  ...NAMES,
  usage: "agent install <harness>… | --all [--user | --shared] [--via <way>] [--print]",
  about:
    "Has a coding agent's harness ask cotenant before each write, so that the agent holds what it changes and never types a\nlock command. By default in settings of this worktree that are not committed; --shared takes those that are, --user your\nown. What is there stays, comments and all. Doing it again changes nothing; 'agent uninstall' brings back every byte.\n\nBy default a program is started for each event. With --via daemon its hooks ask the daemon of this repository, which is quicker,\nand run the program where it does not answer. With --via http Claude Code asks the daemon itself before each tool, which is quickest,\nand refuses where it does not answer. Without --via it is the program again.\nHarnesses: claude, codex, cursor, gemini, copilot, opencode, qwen, pi.",
  flags: {
    ...WHERE,
    via: {
      value: "program|daemon|http",
      meaning: "who answers: the program for each event (default), the daemon, or the daemon over HTTP",
      choices: VIA_NAMES,
    },
    print: { meaning: "show what would be written, and write nothing" },
  },
  examples: [
    "cotenant agent install claude",
    "cotenant agent install codex cursor --print",
    "cotenant agent install --all --user",
    "cotenant agent install claude --via daemon",
  ],
  async run(context, parsed) {
    const isDry = parsed.has("print");
    const shared = parsed.has("shared");
    const harnesses = harnessesFrom(parsed);
    const at = await levelFrom(context, parsed);
    const program = installedFrom(context);
    const wish = { way: parsed.text("via") ?? "program", shared, program: context.program };
    const way = await chooseWay(at, harnesses, wish);
    const { plans, remarks: said } = await addAgents(at, harnesses, { way, isDry, shared, program });
    if (!isDry) await settleDoor(at);
    const hasChanged = plans.some(({ after }) => after !== null);
    const remarks = [...said, ...(await setUpRemarks(await agentsAround(context), at, shared))];
    const lines = isDry
      ? plans.flatMap(printed)
      : hasChanged
        ? ["installed:", ...plans.map(line)]
        : ["agents are installed; nothing changed"];
    const next =
      hasChanged && !isDry ? ["next: start the agent's session anew, then run: cotenant agent doctor"] : [];
    return {
      data: {
        printed: isDry,
        changed: hasChanged && !isDry,
        level: at.level,
        agents: plans.map((plan) => planJson(plan, isDry)),
        remarks,
      },
      text:
        context.quiet && !isDry
          ? ""
          : [...lines, ...remarks.map((remark) => `note: ${remark}`), ...next].join("\n"),
    };
  },
};

function planJson({ site, action, file, after, record, isShared, hides }: SitePlan, isDry: boolean) {
  return {
    harness: site.harness,
    action,
    path: file.path,
    via: record?.via ?? "program",
    shared: isShared,
    hidden_from_git: hides,
    content: isDry ? after : null,
  };
}

function line({ site, action }: SitePlan): string {
  const { title } = HARNESSES[site.harness];
  return `  ${title.padEnd(11)}  ${printable(site.shown, 400)}: ${WRITTEN[action]}`;
}

function printed({ site, action, after }: SitePlan): string[] {
  const head = `# ${printable(site.path, 400)}: ${WRITTEN[action]}`;
  if (after === null) return [head];
  const text = after.replace(/\r?\n$/, "");
  return [head, ...text.split(/\r?\n/).map((line) => verbatim(line)), ""];
}

const TAKEN_OUT: Readonly<Record<Removal["action"], string>> = {
  removed: "removed",
  taken_out: "our entries taken out",
};

export const uninstall: Command = {
  ...NAMES,
  usage: "agent uninstall <harness>… | --all [--user | --shared]",
  about:
    "Takes cotenant out of a harness's settings. Every file is afterwards as it was before, to the byte; what somebody\nchanged in it meanwhile stays. Files that are committed need --shared again, your own --user.",
  flags: WHERE,
  examples: ["cotenant agent uninstall claude", "cotenant agent uninstall --all"],
  mendsConfig: true,
  async run(context, parsed) {
    const harnesses = harnessesFrom(parsed);
    const at = await levelFrom(context, parsed);
    const { removals, left } = await takeOutAgents(at, harnesses, parsed.has("shared"));
    await settleDoor(at);
    const text = [
      removals.length === 0 ? "nothing of cotenant's to take out" : "taken out:",
      ...removals.map(({ found, action }) => `  ${printable(found.site.shown, 400)}: ${TAKEN_OUT[action]}`),
      ...(left.length === 0 ? [] : ["left:"]),
      ...left.map(({ path, why }) => `  ${printable(path, 400)}: ${printable(why, 400)}`),
    ].join("\n");
    const agents = removals.map(({ found, action }) => ({
      harness: found.site.harness,
      path: found.file.path,
      action,
    }));
    return {
      data: { changed: removals.length > 0, level: at.level, agents, left },
      text: context.quiet ? "" : text,
    };
  },
};

export const list: Command = {
  ...NAMES,
  positional: "[<harness>…]",
  about:
    "Shows for each harness whether it has anything in your home (HERE), and which settings have it ask cotenant before it writes:\ninstalled, outdated (by an older version, twice, or from a program that is gone), changed (a file of ours, by hand),\nunreadable or missing.",
  flags: {},
  examples: ["cotenant agent list", "cotenant agent list --json"],
  mendsConfig: true,
  async run(context, parsed) {
    const here = await agentsAround(context);
    const hookBase = here.workspace === null ? null : guardPlaceIn(here.workspace);
    const listed = await listAgents(here, harnessesOrAll(parsed), hookBase);
    const harnesses = listed.map(({ harness, isPresent, files }) => ({
      harness,
      title: HARNESSES[harness].title,
      found: isPresent,
      files: files.map(fileJson),
    }));
    const rows = harnesses.flatMap(({ title, found, files }) =>
      (files.length === 0 ? [null] : files).map((file) => [
        title,
        found ? "yes" : "no",
        file?.level ?? "",
        file === null ? "missing" : stateWords(file),
        file === null ? "" : printable(file.path, 400),
      ]),
    );
    const isAnyInstalled = harnesses.some(({ files }) => files.length > 0);
    const text = [
      columns(context.terminal, ["HARNESS", "HERE", "LEVEL", "STATE", "FILE"], rows),
      ...(isAnyInstalled ? [] : ["next: cotenant agent install <harness>"]),
    ].join("\n");
    return { data: { harnesses }, text };
  },
};

function stateWords({ state, by_hand: isByHand, via }: ReturnType<typeof fileJson>): string {
  return [state, ...(isByHand ? ["by hand"] : []), ...(via === "program" ? [] : [`via ${via}`])].join(", ");
}

function fileJson({ found, state, standing, isProgramThere }: Seen) {
  const { site, file, record } = found;
  return {
    level: site.level,
    path: file.path,
    shared: record?.isShared === true || found.standing === "tracked",
    state: standing,
    by_hand: state.isByHand,
    via: viaName(state.via),
    program: state.program === null ? null : { path: state.program.program, found: isProgramThere },
    why: state.why,
  };
}

const COVERED: Readonly<Record<Coverage, string>> = {
  before: "blocked before",
  after: "seen after",
  open: "open",
  none: "–",
};

export const doctor: Command = {
  ...NAMES,
  positional: "[<harness>…]",
  about:
    "Tries every harness that is installed here, or those that are named: plays a session of it in a scratch repository,\nthrough the very command lines in its settings, and shows what is blocked before it is written, what is only seen\nafter, and what is open. Looks also for what keeps the harness from running its hooks: trust that\nnobody has given, switches in its settings. Where hooks ask the daemon, it is tried with the daemon and without. Exits with 0 when every canary lives and nothing is known to keep hooks from\nrunning, else with 10, as where a named one is not installed, or in a repository where cotenant was never used (no\n.git/cotenant, no .cotenant/config.toml), in which the guard does nothing.\n\nWith --real it also runs the harness's own program, where there is one, for a minute at most: with an empty home, none of your\naccounts and settings, and a scripted model on this machine. It must write and lease a file that nobody holds, leave one that\nsomebody else holds and tell the model who that is, and let go in the end. It tries the protocol, not your trust settings.",
  flags: {
    "no-canary": { meaning: "play no session; only look at the settings" },
    real: { meaning: "run the harnesses' own programs, too" },
  },
  examples: [
    "cotenant agent doctor",
    "cotenant agent doctor --no-canary --json",
    "cotenant agent doctor --real --no-canary",
  ],
  mendsConfig: true,
  async run(context, parsed) {
    const here = await agentsAround(context);
    const { workspace, surroundings } = here;
    const { program } = context;
    const { runCanary } = await import("../real-canary/played-session");
    const found = await examineAgents(here, {
      harnesses: harnessesOrAll(parsed),
      areNamed: parsed.words.length > 0,
      hookBase: workspace === null ? null : guardPlaceIn(workspace),
      trying: parsed.has("no-canary")
        ? null
        : {
            fly: (one, env) => runCanary(one, { program, git: surroundings.git, env }),
            daemon: async () => (workspace === null ? null : guardDaemon(workspace)),
          },
      program: installedFrom(context),
      tryReal: parsed.has("real") ? (trials) => tryReal(context, trials) : null,
    });
    const { examined, real, remarks, isFine } = found;
    return {
      data: { agents: examined.map(examinedJson), real, remarks },
      text: [...textOf(context, found), ...remarks.map((remark) => `note: ${printable(remark, 600)}`)].join(
        "\n",
      ),
      exit: isFine ? 0 : 10,
    };
  },
};

type Trials = Parameters<NonNullable<Parameters<typeof examineAgents>[1]["tryReal"]>>[0];

async function tryReal(context: Context, trials: Trials): Promise<RealReport[]> {
  const { runRealCanaries } = await import("../real-canary/real-canary");
  const { env, home } = context.surroundings();
  const cotenant = installedFrom(context);
  const onStart = (harness: HarnessName, program: string) => {
    if (!context.quiet && !context.json) context.note(`trying ${HARNESSES[harness].title}: ${program}`);
  };
  return interruptibly(context, true, async (signal) => {
    const interrupted = signal ?? new AbortController().signal;
    const reports = await runRealCanaries(trials, { env, home, cotenant, interrupted, onStart });
    if (!interrupted.aborted) return reports;
    throw new CotenantError("E_INTERRUPTED", "stopped; nothing is left behind", {
      hint: "run 'cotenant agent doctor --real' again",
    });
  });
}

function examinedJson({ seen, canary, isByDaemon, hindrances }: Examined) {
  const { found, state, standing } = seen;
  const { site, file } = found;
  return {
    harness: site.harness,
    level: site.level,
    path: file.path,
    state: standing,
    by_hand: state.isByHand,
    via: viaName(state.via),
    answered_by_daemon: isByDaemon,
    canary: canary === null ? null : canary.isAlive ? ("passed" as const) : ("failed" as const),
    why: canary?.why ?? null,
    coverage: canary === null ? null : canary.coverage,
    hindrances,
  };
}

function textOf(
  { terminal }: Context,
  { examined, real, lacksOnlyDaemon }: Awaited<ReturnType<typeof examineAgents>>,
): string[] {
  const others = (real ?? []).filter(
    ({ harness, program }) =>
      program !== null && !examined.some(({ seen }) => seen.found.site.harness === harness),
  );
  const next = "next: cotenant agent install <harness>";
  if (examined.length + others.length === 0) return ["no harness asks cotenant here", next];
  const realCell = (harness: HarnessName) => {
    const report = real?.find((one) => one.harness === harness);
    return real === null ? [] : [report === undefined ? "" : realWord(report)];
  };
  const rows = examined.map(({ seen, canary }) => [
    HARNESSES[seen.found.site.harness].title,
    seen.found.site.level,
    (seen.isProgramThere ? seen.standing : "outdated, its program is gone") +
      (seen.state.via === null ? "" : `, via ${viaName(seen.state.via)}`),
    canary === null ? "" : canary.isAlive ? "passed" : "failed",
    ...realCell(seen.found.site.harness),
    printable(seen.found.file.path, 400),
  ]);
  for (const { harness } of others)
    rows.push([HARNESSES[harness].title, "", "missing", "", ...realCell(harness), ""]);
  const failures = examined.flatMap(({ seen: { found }, canary }) =>
    canary?.why == null ? [] : [`${printable(found.site.shown, 400)}: ${printable(canary.why, 400)}`],
  );
  const flown = examined.filter(({ canary }) => canary?.isAlive === true);
  const heads = flown.map(({ seen: { found } }) =>
    flown.filter((other) => other.seen.found.site.harness === found.site.harness).length > 1
      ? `${HARNESSES[found.site.harness].title} (${found.site.level})`
      : HARNESSES[found.site.harness].title,
  );
  const table = WAYS.map((way) => [
    WAY_WORDS[way],
    ...flown.map(({ canary }) => COVERED[canary!.coverage[way]]),
  ]);
  const mend = lacksOnlyDaemon ? "cotenant daemon start" : "cotenant agent install <harness>";
  return [
    columns(
      terminal,
      ["HARNESS", "LEVEL", "STATE", "CANARY", ...(real === null ? [] : ["REAL"]), "FILE"],
      rows,
    ),
    ...failures,
    ...(flown.length === 0 ? [] : ["", columns(terminal, ["WHAT AN AGENT DOES", ...heads], table)]),
    ...(failures.length === 0 ? [] : [`next: ${mend}, then try again`]),
  ];
}
