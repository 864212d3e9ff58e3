import { areHooksOn } from "../../agents/codex-toml";
import { type Coverage, WAY_WORDS, WAYS } from "../../agents/coverage";
import { distrust } from "../../agents/folder-trust";
import { sitesOf } from "../../agents/sites";
import { HARNESSES } from "../../guard/harness";
import { isInUse } from "../../guard/place";
import { HARNESS_NAMES } from "../../identity/harness";
import { printable } from "../../kernel/ids";
import { type CanaryReport, runCanary } from "../agent-canary";
import { harnessesOrAll, lookAround, type Seen, stateSeen } from "../agents";
import type { Command, Context } from "../command";
import { columns } from "../render";

const WORDS: Readonly<Record<Coverage, string>> = {
  before: "blocked before",
  after: "seen after",
  open: "open",
  none: "–",
};

interface Examined {
  readonly seen: Seen;
  readonly canary: CanaryReport | null;
}

export const command: Command = {
  usage: "agent doctor [<harness>…] [--no-canary]",
  about:
    "Tries every harness that is installed here, or those that are named: plays a session of it in a scratch repository,\nthrough the very command lines in its settings, and shows what is blocked before it is written, what is only seen\nafter, and what is open. Exits with 0 when every canary lives, else with 10, as where a named one is not installed, or in a\nrepository where cotenant was never used (no .git/cotenant, no .cotenant/config.toml), in which the guard does nothing.",
  flags: { "no-canary": { meaning: "start nothing; only look at the settings" } },
  examples: ["cotenant agent doctor", "cotenant agent doctor --no-canary --json"],
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
    const examined = await Promise.all(
      ours.map(async (one): Promise<Examined> => {
        const canary = parsed.has("no-canary") ? null : await runCanary(one.found, program, surroundings);
        return { seen: one, canary };
      }),
    );
    const broken = seen.filter(({ state, found }) => state.state === "unreadable" && found.record !== null);
    const missing = harnessesOrAll(parsed).filter(
      (harness) => parsed.words.length > 0 && !ours.some(({ found }) => found.site.harness === harness),
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
    remarks.push(...(await codexRemarks(ours, { grounds, platform })), ...twice(ours));
    for (const { found } of ours.filter((one) => one.found.site.level === "project")) {
      const why = await distrust(platform.files, found.site.harness, grounds);
      if (why !== null) remarks.push(`${HARNESSES[found.site.harness].title} ${why}`);
    }
    const isFine =
      !isIdle &&
      broken.length === 0 &&
      missing.length === 0 &&
      examined.every(({ seen: one, canary }) => isWell(one, canary));
    return {
      data: { agents: examined.map(agentJson), remarks },
      text: [
        ...textOf(context, examined),
        ...remarks.map((remark) => `note: ${printable(remark, 600)}`),
      ].join("\n"),
      exit: isFine ? 0 : 10,
    };
  },
};

function isWell({ isProgramThere }: Seen, canary: CanaryReport | null): boolean {
  return isProgramThere && canary?.isAlive !== false;
}

function agentJson({ seen, canary }: Examined) {
  const { found, state } = seen;
  const { site, file } = found;
  return {
    harness: site.harness,
    level: site.level,
    path: file.path,
    state: stateSeen(seen),
    by_hand: state.isByHand,
    canary: canary === null ? null : canary.isAlive ? ("passed" as const) : ("failed" as const),
    why: canary?.why ?? null,
    coverage: canary === null ? null : canary.coverage,
  };
}

function textOf(context: Context, examined: readonly Examined[]): string[] {
  if (examined.length === 0)
    return ["no harness asks cotenant here", "next: cotenant agent install <harness>"];
  const { terminal } = context;
  const rows = examined.map(({ seen: { found, state, isProgramThere }, canary }) => [
    HARNESSES[found.site.harness].title,
    found.site.level,
    isProgramThere ? state.state : "outdated, its program is gone",
    canary === null ? "" : canary.isAlive ? "passed" : "failed",
    printable(found.file.path, 400),
  ]);
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
    columns(terminal, ["HARNESS", "LEVEL", "STATE", "CANARY", "FILE"], rows),
    ...failures,
    ...(flown.length === 0 ? [] : ["", columns(terminal, ["WHAT AN AGENT DOES", ...heads], table)]),
    ...(failures.length === 0 ? [] : ["next: cotenant agent install <harness>, then try again"]),
  ];
}

/** Codex runs no hook that nobody has agreed to, and none at all where it is told so. */
async function codexRemarks(
  ours: readonly Seen[],
  { grounds, platform }: Pick<Awaited<ReturnType<typeof lookAround>>, "grounds" | "platform">,
): Promise<string[]> {
  if (!ours.some(({ found }) => found.site.harness === "codex")) return [];
  const remarks = ["Codex runs a hook only after you have agreed to it once: start it and say /hooks"];
  for (const { path, shown, format } of [
    ...sitesOf("codex", "project", grounds),
    ...sitesOf("codex", "user", grounds),
  ]) {
    const bytes = format === "toml" ? await platform.files.readFile(path) : null;
    if (bytes !== null && !areHooksOn(new TextDecoder().decode(bytes)))
      remarks.push(`${shown} switches Codex's hooks off: [features] hooks = false`);
  }
  return remarks;
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
