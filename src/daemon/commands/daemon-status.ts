import type { Command } from "../../cli/grammar/command";
import { duration } from "../../cli/terminal/render";
import { count } from "../../kernel/printing";
import { type Standing, standingOf } from "../life";
import { type Missed, missedDaemon } from "../missed";
import { daemonPlace } from "../place";

export const command: Command = {
  usage: "daemon status",
  about: "Says whether the daemon of this repository runs, since when, and what it looks after.",
  flags: {},
  examples: ["cotenant daemon status", "cotenant daemon status --json"],
  words: { min: 0, max: 0 },
  async run(context) {
    const workspace = await context.workspace();
    const { repository, surroundings, config } = workspace;
    const place = daemonPlace(repository.controlDir);
    const standing = await standingOf(surroundings.platform, place);
    const record = standing.state === "none" ? null : standing.record;
    const missed = standing.state === "none" ? await missedDaemon(workspace) : null;
    if (!context.quiet && standing.state === "running" && !config.values["coordination.auto_renew_leases"])
      context.note(RENEWS_NOTHING);
    return {
      data: {
        state: standing.state,
        pid: record?.pid ?? null,
        socket: record?.socket ?? null,
        log: place.log,
        daemon: standing.state === "running" ? standing.said : null,
      },
      text: context.quiet ? "" : words(standing, missed),
    };
  },
};

/** People start it for that, and it is off until somebody asks for it. */
export const RENEWS_NOTHING =
  "it renews no leases: for that, cotenant config set coordination.auto_renew_leases true";

/** One of an older version does not say which of them live. */
interface Kept {
  readonly leases: number;
  readonly living?: number;
  readonly renewed: number;
}

function keptWords({ leases, living = leases, renewed }: Kept): string {
  const left = leases - living;
  const dying =
    left === 0
      ? ""
      : `, ${left} left to run out: ${left === 1 ? "its session is" : "their sessions are"} gone`;
  return `${count(living, "lease")} renewed while ${living === 1 ? "its session lives" : "their sessions live"}${dying} (${count(renewed, "renewal")} so far)`;
}

interface Beats {
  readonly is_on: boolean;
  readonly sessions?: number;
}

function heartWords({ is_on: isOn, sessions }: Beats): string[] {
  return isOn && sessions !== undefined ? [`heartbeats for ${count(sessions, "session")}`] : [];
}

interface GuardCounts {
  readonly events: number;
  readonly declined: number;
  readonly http_port: number | null;
}

function guardWords({ events, declined, http_port: port }: GuardCounts): string {
  const left = declined === 0 ? "" : `, ${declined} left to the program`;
  return `${count(events, "event")} of harnesses answered${left}${port === null ? "" : `; HTTP on port ${port}`}`;
}

interface Memory {
  readonly followers: number;
  readonly watches: number;
  readonly folders: readonly { folder: string; standing: string; issues: number; why: string | null }[];
}

function memoryWords({ followers, watches, folders }: Memory): string[] {
  const issues = folders.reduce((sum, folder) => sum + folder.issues, 0);
  const unsure = folders.filter(({ standing }) => standing === "unsure");
  return [
    `${count(followers, "follower")} of the log, ${count(issues, "issue")} watched (${count(watches, "watch", "watches")})`,
    ...unsure.map(({ folder, why }) => `${folder} is not watched: ${why}`),
  ];
}

function words(standing: Standing, missed: Missed | null): string {
  if (standing.state === "none")
    return missed === null
      ? "no daemon is running; commands work without it"
      : `no daemon is running: ${missed.message}\n  next: ${missed.next}`;
  if (standing.state === "silent")
    return `a daemon has the lock and does not answer${standing.record === null ? "" : ` (process ${standing.record.pid})`}: commands go on without it; 'cotenant daemon stop' ends it`;
  const { record, said } = standing;
  return [
    `process ${record.pid}, version ${record.version}, up ${duration(Number(said["uptime_secs"]) * 1000)}`,
    `  ${count(Number(said["clients"]) - 1, "client")} connected`,
    `  ${keptWords(said["kept"] as Kept)}`,
    ...heartWords(said["heartbeats"] as Beats).map((line) => `  ${line}`),
    `  ${guardWords(said["guard"] as GuardCounts)}`,
    ...memoryWords(said["memory"] as Memory).map((line) => `  ${line}`),
    `  log: ${said["log"]}`,
  ].join("\n");
}
