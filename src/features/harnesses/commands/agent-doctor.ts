import type { Command, Context } from "../../../cli/grammar/command";
import { columns } from "../../../cli/terminal/render";
import type { Surroundings } from "../../../coordinator/workspace";
import { HARNESS_NAMES } from "../../../identity/harness";
import { printable } from "../../../kernel/ids";
import { HARNESSES } from "../../guard/harness";
import { isInUse } from "../../guard/worktree";
import { viaFlag, viaName } from "../command-line";
import { type Coverage, WAY_WORDS, WAYS } from "../coverage";
import { hindrances } from "../hindrances";
import type { RealReport } from "../real-outcome";
import { type CanaryReport, groundedCanary, runCanary } from "./agent-canary";
import { type GuardDaemon, guardDaemon } from "./agent-daemon";
import { areRealWell, realRemarks, realWord, tryRealPrograms } from "./agent-real";
import { harnessesOrAll, lookAround, type Seen, stateSeen } from "./agents";

const WORDS: Readonly<Record<Coverage, string>> = {
  before: "blocked before",
  after: "seen after",
  open: "open",
  none: "–",
};

interface Examined {
  readonly seen: Seen;
  readonly canary: CanaryReport | null;
  /** Whether the daemon has answered; null where it is not asked, or no canary was sent. */
  readonly isByDaemon: boolean | null;
  /** Why the harness does not run these hooks. */
  readonly hindrances: readonly string[];
}

export const command: Command = {
  usage: "agent doctor [<harness>…] [--no-canary] [--real]",
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
  words: { min: 0, max: HARNESS_NAMES.length },
  completes: HARNESS_NAMES.map(() => ({ choices: HARNESS_NAMES })),
  mendsConfig: true,
  async run(context, parsed) {
    const { seen, surroundings, grounds, platform, workspace } = await lookAround(
      context,
      harnessesOrAll(parsed),
    );
    const ours = seen.filter(({ state: { state } }) => ["installed", "outdated", "changed"].includes(state));
    const program = context.program;
    const mainRoot = workspace?.repository.mainWorktreeRoot ?? null;
    const look = { files: platform.files, digest: platform.digest, grounds, mainRoot, machine: "" };
    const examined = await Promise.all(
      ours.map(async (one): Promise<Examined> => {
        const flown = parsed.has("no-canary")
          ? null
          : await flyCanaries(one, program, surroundings, workspace?.repository.controlDir ?? null);
        return { seen: one, ...(flown ?? NOT_FLOWN), hindrances: await hindrances(look, one.found.site) };
      }),
    );
    const areNamed = parsed.words.length > 0;
    const real = parsed.has("real") ? await tryRealPrograms(context, harnessesOrAll(parsed), ours) : null;
    const broken = seen.filter(({ state, found }) => state.state === "unreadable" && found.record !== null);
    const missing = harnessesOrAll(parsed).filter(
      (harness) => areNamed && !ours.some(({ found }) => found.site.harness === harness),
    );
    const isIdle =
      ours.length > 0 && workspace !== null && !(await isInUse(surroundings, workspace.repository));
    const remarks = [
      ...(isIdle
        ? [
            "cotenant was never used in this repository, so the guard lets everything pass in it: run 'cotenant init'",
          ]
        : []),
      ...broken.map(({ found, state }) => `${found.site.shown} cannot be read: ${state.why}`),
      ...missing.map(
        (name) => `${HARNESSES[name].title} does not ask cotenant: cotenant agent install ${name}`,
      ),
    ];
    const kept = examined.flatMap(({ seen: { found }, hindrances: reasons }) =>
      reasons.map((why) => `${HARNESSES[found.site.harness].title} ${why}`),
    );
    remarks.push(...new Set(kept), ...twice(ours), ...new Set(examined.flatMap(withoutDaemon)));
    if (real !== null) remarks.push(...realRemarks(real, areNamed));
    const isFine =
      areRealWell(real ?? [], areNamed) &&
      !isIdle &&
      broken.length === 0 &&
      missing.length === 0 &&
      kept.length === 0 &&
      examined.every(({ seen: one, canary }) => isWell(one, canary));
    return {
      data: { agents: examined.map(agentJson), real, remarks },
      text: [
        ...textOf(context, examined, real),
        ...remarks.map((remark) => `note: ${printable(remark, 600)}`),
      ].join("\n"),
      exit: isFine ? 0 : 10,
    };
  },
};

function isWell({ isProgramThere }: Seen, canary: CanaryReport | null): boolean {
  return isProgramThere && canary?.isAlive !== false;
}

function agentJson({ seen, canary, isByDaemon, hindrances: reasons }: Examined) {
  const { found, state } = seen;
  const { site, file } = found;
  return {
    harness: site.harness,
    level: site.level,
    path: file.path,
    state: stateSeen(seen),
    by_hand: state.isByHand,
    via: viaName(state.via),
    answered_by_daemon: isByDaemon,
    canary: canary === null ? null : canary.isAlive ? ("passed" as const) : ("failed" as const),
    why: canary?.why ?? null,
    coverage: canary === null ? null : canary.coverage,
    hindrances: reasons,
  };
}

function textOf(
  context: Context,
  examined: readonly Examined[],
  real: readonly RealReport[] | null,
): string[] {
  const { terminal } = context;
  const others = (real ?? []).filter(
    ({ harness, program }) =>
      program !== null && !examined.some(({ seen }) => seen.found.site.harness === harness),
  );
  const next = "next: cotenant agent install <harness>";
  if (examined.length + others.length === 0) return ["no harness asks cotenant here", next];
  const realCell = (harness: RealReport["harness"]) => (real === null ? [] : [realWord(real, harness)]);
  const rows = examined.map(({ seen, canary }) => [
    HARNESSES[seen.found.site.harness].title,
    seen.found.site.level,
    (seen.isProgramThere ? stateSeen(seen) : "outdated, its program is gone") +
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
    ...flown.map(({ canary }) => WORDS[canary!.coverage[way]]),
  ]);
  return [
    columns(
      terminal,
      ["HARNESS", "LEVEL", "STATE", "CANARY", ...(real === null ? [] : ["REAL"]), "FILE"],
      rows,
    ),
    ...failures,
    ...(flown.length === 0 ? [] : ["", columns(terminal, ["WHAT AN AGENT DOES", ...heads], table)]),
    ...(failures.length === 0 ? [] : [`next: ${mendingCommand(examined)}, then try again`]),
  ];
}

/** Where only a daemon is missing, the settings are as they should be. */
function mendingCommand(examined: readonly Examined[]): string {
  const failed = examined.filter(({ canary }) => canary?.why != null);
  return failed.every(({ canary }) => canary!.why === NO_DAEMON)
    ? "cotenant daemon start"
    : "cotenant agent install <harness>";
}

const NO_DAEMON = "no daemon is running";

const NOT_FLOWN: Pick<Examined, "canary" | "isByDaemon"> = { canary: null, isByDaemon: null };

/**
 * Where the daemon is asked first, the same must come of it with the daemon and without. Where there is nothing to fall back to, one
 * canary has to do.
 */
async function flyCanaries(
  { found, state: { via } }: Seen,
  program: string,
  surroundings: Surroundings,
  controlDir: string | null,
): Promise<Pick<Examined, "canary" | "isByDaemon">> {
  const { platform } = surroundings;
  const before = via === null ? null : await guardDaemon(platform, controlDir);
  // Whoever else listens there is not shown the token.
  if (via?.http != null && before?.httpPort !== via.http.port)
    return {
      canary: groundedCanary(
        before === null
          ? NO_DAEMON
          : `the daemon does not listen on port ${via.http.port}, which others may have`,
      ),
      isByDaemon: false,
    };
  const canary = await runCanary(found, program, surroundings);
  if (via === null) return { canary, isByDaemon: null };
  const after = await guardDaemon(platform, controlDir);
  const seen = (daemon: GuardDaemon | null) => daemon?.events[found.site.harness] ?? 0;
  const isByDaemon = before !== null && seen(after) > seen(before);
  if (!canary.isAlive || via.http !== null) return { canary, isByDaemon };
  const alone = await runCanary(found, program, surroundings, { COTENANT_NO_DAEMON: "1" });
  return {
    canary: alone.isAlive ? canary : { ...alone, why: `without the daemon: ${alone.why}` },
    isByDaemon,
  };
}

function withoutDaemon({ seen: { found, state, isDaemonHere }, isByDaemon, canary }: Examined): string[] {
  if (state.via === null || isByDaemon !== false) return [];
  const { harness } = found.site;
  const { title } = HARNESSES[harness];
  if (!isDaemonHere)
    return [
      `${title} asks the daemon of another place: cotenant agent install ${harness}${viaFlag(state.via)}`,
    ];
  return state.via.http === null
    ? [`no daemon answers ${title}'s hooks at present, so that the program does; the next hook starts one`]
    : [
        `no daemon answers ${title}, which can write nothing until one does: ${canary?.why === NO_DAEMON ? "cotenant daemon start" : `cotenant agent install ${harness} --via http`}`,
      ];
}

/** Both run then, with one effect; each costs its start. */
function twice(ours: readonly Seen[]): string[] {
  const count = new Map<string, number>();
  for (const { found } of ours) count.set(found.site.harness, (count.get(found.site.harness) ?? 0) + 1);
  return [...count].flatMap(([harness, many]) =>
    many > 1
      ? [
          `${HARNESSES[harness as keyof typeof HARNESSES].title} asks ${many} times for every write, from ${many} files; once is enough`,
        ]
      : [],
  );
}
