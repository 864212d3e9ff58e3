import type { LogCheck } from "../../testing/checker/log-check";
import type { Verdict } from "../../testing/checker/verdict";
import type { AgentState } from "./agent-process";
import type { Books, Counted } from "./books";
import type { Crew } from "./crew";
import type { Doing } from "./messages";

type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";
export type Paint = (style: Style, text: string) => string;

/** What there is to see at one instant. */
export interface Picture {
  readonly seed: number;
  readonly elapsedMs: number;
  readonly lengthMs: number;
  readonly phase: string;
  readonly agents: readonly {
    readonly name: string;
    readonly pid: number | null;
    readonly state: AgentState;
    readonly doing: Doing;
    readonly about: string;
  }[];
  readonly leases: readonly {
    readonly label: string;
    readonly token: number;
    readonly who: string;
    /** Held by a process that is no more: lapsed, or about to. */
    readonly isDead: boolean;
  }[];
  readonly counts: Readonly<Record<Counted, number>>;
  readonly checked: number;
  readonly violations: readonly string[];
  /** Newest last. */
  readonly events: readonly string[];
}

/** What a view is drawn from: agents by what they say, leases by what the log says. */
export interface DemoState extends Pick<Picture, "seed" | "elapsedMs" | "lengthMs" | "phase" | "events"> {
  readonly crew: Crew | null;
  readonly log: LogCheck | null;
  readonly books: Books;
  readonly verdict: Verdict;
  label(key: string): string;
}

export function takePicture(scene: DemoState): Picture {
  const { seed, elapsedMs, lengthMs, phase, events, crew, log, books, verdict, label } = scene;
  const agents = (crew?.agents ?? []).map(({ name, pid, state, doing }) => ({
    name,
    pid,
    state,
    doing: doing.what,
    about: doing.keys.map(label).join(", "),
  }));
  const leases = [...(log?.open.values() ?? [])].map(({ key, token, agentId, pids }) => ({
    label: label(key),
    token,
    who: agentId.slice(agentId.indexOf(":") + 1),
    isDead: [...pids].every((pid) => crew?.dead.has(pid)),
  }));
  const { counts } = books;
  const { checked, violations } = verdict;
  return { seed, elapsedMs, lengthMs, phase, agents, leases, counts, checked, violations, events };
}

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

const MOST_AGENTS_SHARE = 0.45;
const MOST_LEASE_LINES = 6;

/** The picture as lines, none wider and together no higher than the terminal allows. */
export function draw(picture: Picture, size: Size, paint: Paint): string[] {
  const width = Math.max(1, size.columns - 1);
  const height = Math.max(1, size.rows - 1);
  const head = [header(picture, width, paint), ""];
  const agents = agentLines(picture, width, Math.max(3, Math.floor(height * MOST_AGENTS_SHARE)), paint);
  const counts = ["", ...counterLines(picture, width, paint)];
  let left = height - head.length - agents.length - counts.length;
  const leases =
    left >= 3
      ? leaseLines(picture, width, Math.min(left - 1, Math.ceil(left / 2), MOST_LEASE_LINES), paint)
      : [];
  left -= leases.length;
  const events = left >= 2 ? eventLines(picture, width, left, paint) : [];
  return [...head, ...agents, ...leases, ...counts, ...events].slice(0, height);
}

function header(picture: Picture, width: number, paint: Paint): string {
  const { seed, elapsedMs, lengthMs, phase } = picture;
  const title = cut("cotenant demo", width);
  const words = `  seed ${seed}  ${phase}  ${(elapsedMs / 1000).toFixed(1)} s `;
  const room = Math.min(30, width - title.length - words.length - 1);
  const done = Math.round(room * Math.min(1, elapsedMs / lengthMs));
  const bar = room < 8 ? "" : paint("green", "━".repeat(done)) + paint("dim", "─".repeat(room - done));
  return paint("bold", title) + paint("dim", cut(words, width - title.length)) + bar;
}

const LOOKS: Readonly<
  Record<string, { readonly mark: string; readonly style: Style; readonly word: string }>
> = {
  rests: { mark: "·", style: "dim", word: "rests" },
  asks: { mark: "○", style: "cyan", word: "asks for" },
  waits: { mark: "◔", style: "yellow", word: "waits for" },
  works: { mark: "●", style: "green", word: "works on" },
  poses: { mark: "●", style: "green", word: "holds" },
  starting: { mark: "·", style: "dim", word: "starts" },
  stopped: { mark: "‖", style: "yellow", word: "stopped, believes in" },
  dead: { mark: "×", style: "red", word: "killed" },
  gone: { mark: " ", style: "dim", word: "done" },
};

function agentLines(picture: Picture, width: number, most: number, paint: Paint): string[] {
  const { agents } = picture;
  const shown = agents.length <= most ? agents : agents.slice(0, most - 1);
  const nameWidth = Math.max(...agents.map(({ name }) => name.length));
  const lines = shown.map((agent) => {
    const look = LOOKS[agent.state === "up" ? agent.doing : agent.state]!;
    const about = ["dead", "gone", "starting"].includes(agent.state) ? "" : agent.about;
    const pid = width >= 60 ? String(agent.pid ?? "").padStart(8) : "";
    const name = cut(` ${agent.name.padEnd(nameWidth)}`, width - 4);
    const room = width - name.length - pid.length - 4;
    const words = cut(`${look.word}${about === "" ? "" : ` ${about}`}`, room);
    return ` ${paint(look.style, look.mark)}${paint("bold", name)}${paint("dim", pid)}  ${paint(look.style, words)}`;
  });
  const rest = agents.length - shown.length;
  return rest === 0 ? lines : [...lines, paint("dim", cut(`   and ${rest} more`, width))];
}

function leaseLines(picture: Picture, width: number, most: number, paint: Paint): string[] {
  const items = picture.leases.map(
    ({ label, token, who, isDead }) => `${label} #${token} ${who}${isDead ? " ×" : ""}`,
  );
  const title = `${items.length} ${items.length === 1 ? "lease" : "leases"} in the log`;
  // Even with none the place is kept: a view that jumps cannot be read.
  const lines = flow(items, width - 2, most - 2).map((line) => `  ${line}`);
  while (lines.length < most - 2) lines.push("");
  return ["", paint("dim", cut(title, width)), ...lines];
}

const SHOWN: readonly (readonly [Counted, string])[] = [
  ["granted", "granted"],
  ["refused", "refused"],
  ["waited", "waited"],
  ["renewed", "renewed"],
  ["killed", "killed"],
  ["stolen", "stolen"],
  ["expired", "expired"],
  ["evicted", "evicted"],
  ["transferred", "transferred"],
  ["fenced", "fenced off"],
];

function counterLines(picture: Picture, width: number, paint: Paint): string[] {
  const { counts, checked, violations } = picture;
  const lines = flow(
    SHOWN.map(([name, word]) => `${word} ${counts[name]}`),
    width,
    4,
  );
  const verdict = `${checked.toLocaleString("en")} checks, `;
  const wrong = violations.length === 0 ? "no violation" : `${violations.length} violated: ${violations[0]}`;
  const room = width - verdict.length;
  const style = violations.length === 0 ? "green" : "red";
  return [...lines, cut(verdict, width) + paint(style, cut(oneLine(wrong), room))];
}

function eventLines(picture: Picture, width: number, most: number, paint: Paint): string[] {
  const newest = picture.events.slice(1 - most);
  return ["", ...newest.map((event) => paint("dim", cut(oneLine(event), width)))];
}

/** Items side by side in as few lines as they fit in; what does not fit is counted. */
function flow(items: readonly string[], width: number, most: number): string[] {
  const lines: string[] = [];
  for (const item of items) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 3 + item.length <= width)
      lines[lines.length - 1] = `${last}   ${item}`;
    else lines.push(cut(item, width));
  }
  if (lines.length <= most) return lines;
  return most <= 0 ? [] : [...lines.slice(0, most - 1), cut(`${lines[most - 1]} …`, width)];
}

function cut(text: string, width: number): string {
  if (width <= 0) return "";
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, " / ");
}
