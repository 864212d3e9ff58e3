import type { Command } from "../../cli/grammar/command";
import { usage } from "../../cli/grammar/parse";
import type { MissedDaemon } from "../../coordinator/workspace";
import { printable } from "../../kernel/ids";
import { count, duration } from "../../kernel/printing";
import { NOTHING_WRITTEN } from "../http-door";
import type { Standing } from "../life";
import { daemon } from "../operations";
import { type Supervisor, stepsFor } from "../units";

export const start: Command = {
  about:
    "Starts the daemon of this repository in the background, or finds the one that is running. It renews leases of living\nsessions if coordination.auto_renew_leases is on, gathers many changes into one write to the disk, and answers programs over a\nsocket. Everything works without it. One of another build is replaced.",
  flags: {},
  examples: ["cotenant daemon start"],
  words: { min: 0, max: 0 },
  async run(context) {
    const workspace = await context.workspace();
    const { isNew, replaced, record, log } = await daemon.start(workspace, { program: context.program });
    if (!context.quiet && !workspace.config.values["coordination.auto_renew_leases"])
      context.note(RENEWS_NOTHING);
    const how = isNew ? "started" : "running already";
    const instead = replaced === null ? "" : `, in the place of ${replaced} of another build`;
    return {
      data: { pid: record.pid, is_new: isNew, replaced, socket: record.socket, log },
      text: context.quiet ? "" : `${how}: process ${record.pid}${instead}`,
    };
  },
};

export const stop: Command = {
  about:
    "Ends the daemon of this repository, once it has answered what it was asked. No lease ends by that; but leases that it has\nrenewed run out, unless their sessions renew them.",
  flags: {},
  examples: ["cotenant daemon stop"],
  words: { min: 0, max: 0 },
  async run(context) {
    const { pid, isMissed, startedBy } = await daemon.stop(await context.workspace());
    if (!context.quiet && isMissed) context.note(`${NOTHING_WRITTEN}: cotenant daemon start`);
    if (!context.quiet && startedBy !== null)
      context.note(`${startedBy} is on: the next command that changes leases starts one again`);
    const text = pid === null ? "no daemon is running" : `ended: process ${pid}`;
    return { data: { was_running: pid !== null, pid }, text: context.quiet ? "" : text };
  },
};

export const status: Command = {
  about: "Says whether the daemon of this repository runs, since when, and what it looks after.",
  flags: {},
  examples: ["cotenant daemon status", "cotenant daemon status --json"],
  words: { min: 0, max: 0 },
  async run(context) {
    const workspace = await context.workspace();
    const { standing, log, missed } = await daemon.status(workspace);
    const record = standing.state === "none" ? null : standing.record;
    const renews = workspace.config.values["coordination.auto_renew_leases"];
    if (!context.quiet && standing.state === "running" && !renews) context.note(RENEWS_NOTHING);
    return {
      data: {
        state: standing.state,
        pid: record?.pid ?? null,
        socket: record?.socket ?? null,
        log,
        daemon: standing.state === "running" ? standing.said : null,
      },
      text: context.quiet ? "" : words(standing, missed),
    };
  },
};

/** People start it for that, and it is off until somebody asks for it. */
const RENEWS_NOTHING =
  "it renews no leases: for that, cotenant config set coordination.auto_renew_leases true";

/** What a daemon says of itself. One of an older version does not say which leases live, nor how many sessions it beats for. */
interface Said {
  readonly uptime_secs: number;
  readonly clients: number;
  readonly log: string;
  readonly kept: { readonly leases: number; readonly living?: number; readonly renewed: number };
  readonly heartbeats: { readonly is_on: boolean; readonly sessions?: number };
  readonly guard: { readonly events: number; readonly declined: number; readonly http_port: number | null };
  readonly memory: {
    readonly followers: number;
    readonly watches: number;
    readonly folders: readonly { folder: string; standing: string; issues: number; why: string | null }[];
  };
}

function words(standing: Standing, missed: MissedDaemon | null): string {
  if (standing.state === "none")
    return missed === null
      ? "no daemon is running; commands work without it"
      : `no daemon is running: ${missed.message}\n  next: ${missed.next}`;
  if (standing.state === "silent")
    return `a daemon has the lock and does not answer${standing.record === null ? "" : ` (process ${standing.record.pid})`}: commands go on without it; 'cotenant daemon stop' ends it`;
  const { record } = standing;
  const {
    uptime_secs: upSecs,
    clients,
    log,
    kept,
    heartbeats,
    guard,
    memory,
  } = standing.said as unknown as Said;
  const { leases, living = leases, renewed } = kept;
  const dying = leases - living;
  const issues = memory.folders.reduce((sum, folder) => sum + folder.issues, 0);
  return [
    `process ${record.pid}, version ${record.version}, up ${duration(upSecs * 1000)}`,
    `${count(clients - 1, "client")} connected`,
    `${count(living, "lease")} renewed while ${living === 1 ? "its session lives" : "their sessions live"}` +
      (dying === 0
        ? ""
        : `, ${dying} left to run out: ${dying === 1 ? "its session is" : "their sessions are"} gone`) +
      ` (${count(renewed, "renewal")} so far)`,
    ...(heartbeats.is_on && heartbeats.sessions !== undefined
      ? [`heartbeats for ${count(heartbeats.sessions, "session")}`]
      : []),
    `${count(guard.events, "event")} of harnesses answered` +
      (guard.declined === 0 ? "" : `, ${guard.declined} left to the program`) +
      (guard.http_port === null ? "" : `; HTTP on port ${guard.http_port}`),
    `${count(memory.followers, "follower")} of the log, ${count(issues, "issue")} watched (${count(memory.watches, "watch", "watches")})`,
    ...memory.folders
      .filter(({ standing: how }) => how === "unsure")
      .map(({ folder, why }) => `${folder} is not watched: ${why}`),
    `log: ${log}`,
  ].join("\n  ");
}

const SUPERVISORS: readonly Supervisor[] = ["systemd", "launchd"];

export const install: Command = {
  positional: "[systemd|launchd]",
  about:
    "Prints what makes systemd (as a user unit) or launchd start the daemon of this repository when you log in, and where to put\nit. Nothing is written. Without a name it is the one that this machine has.",
  flags: { print: { isRequired: true, meaning: "print it; the only thing there is" } },
  examples: ["cotenant daemon install --print", "cotenant daemon install --print launchd"],
  words: { min: 0, max: 1 },
  completes: [{ choices: SUPERVISORS }],
  async run(context, parsed) {
    if (!parsed.has("print"))
      throw usage("cotenant does not install it; add --print to see the unit and where to put it");
    const word = parsed.words[0] ?? (process.platform === "darwin" ? "launchd" : "systemd");
    const supervisor = SUPERVISORS.find((known) => known === word);
    if (supervisor === undefined)
      throw usage(
        `there is no "${printable(word)}" here: it is systemd or launchd`,
        "cotenant daemon install --help",
      );
    const unit = daemon.install(await context.workspace(), { supervisor, program: context.program });
    if (!context.quiet) {
      context.note("if a daemon is running, end it first: cotenant daemon stop");
      context.note("to install it, run:");
      for (const line of stepsFor(supervisor, unit)) context.note(`  ${line}`);
    }
    const file = `${context.surroundings().home ?? "~"}/${unit.file}`;
    return { data: { supervisor, ...unit, file }, text: unit.text.trimEnd() };
  },
};
