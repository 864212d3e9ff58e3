import { keysMeet, keysOf, type Operation, type Seen } from "./history";
import type { State } from "./state";

export interface Dead {
  /** The one that nothing can explain. */
  readonly operation: Operation;
  /** Others that were under way. */
  readonly open: readonly Operation[];
  /** What the state can have been. */
  readonly states: readonly State[];
  readonly past: readonly Operation[];
  readonly tooMany: boolean;
  /** When a token is the trouble: the highest one that had been given. */
  readonly highest?: number;
}

const SHOWN = 12;

/** The shortest part of the history that shows what is wrong, for people. */
export function explain({ operation, open, states, past, tooMany, highest }: Dead): string {
  const what = tooMany
    ? "too many ways to tell this story: it cannot be checked"
    : highest === undefined
      ? "no order of these operations is possible"
      : `a token that is not above ${highest}, which had been given before this was asked`;
  const keys = keysOf(operation);
  const isNear = (other: Operation) => {
    const others = keysOf(other);
    return keys === null || others === null || keys.some((key) => others.some((one) => keysMeet(key, one)));
  };
  const zeroMs = operation.calledMs;
  const section = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : [`  ${title}`, ...lines.map((line) => `    ${line}`)];
  const changes = past.filter(
    (other) => isNear(other) && other.ask.do !== "read" && other.answer.is !== "refused",
  );
  return [
    what,
    ...section(
      "before, answered:",
      changes.slice(-SHOWN).map((one) => tell(one, zeroMs)),
    ),
    ...section("so the state was:", [...new Set(states.map(describe))].slice(0, SHOWN)),
    ...section(
      "under way at the same time:",
      open.filter(isNear).map((one) => tell(one, zeroMs)),
    ),
    ...section("and this does not fit:", [tell(operation, zeroMs)]),
  ].join("\n");
}

/** Instants in milliseconds from the call of the one that does not fit. */
function tell({ caller, calledMs, endedMs, ask, answer }: Operation, zeroMs: number): string {
  const at = (ms: number) => (Number.isFinite(ms) ? (ms - zeroMs).toFixed(2) : "…");
  const who = `${caller.agent}/${caller.session}`;
  return `[${at(calledMs)}, ${at(endedMs)}] ${who} ${asked(ask)}: ${answered(answer, zeroMs)}`;
}

function asked(ask: Operation["ask"]): string {
  switch (ask.do) {
    case "acquire": {
      const how = `${ask.steal ? "steal" : "acquire"}`;
      const wants = ask.wants.map(({ key, within }) => (within === null ? key : `${key}@${within}`));
      return `${how} ${wants.join(" ")} ${ask.bound ? "bound to its process" : `for ${ask.ttlMs} ms`}`;
    }
    case "transfer":
      return `transfer ${ask.name.key} (${short(ask.name.id)}) to ${ask.toAgent}`;
    case "write":
      return `write under ${ask.name.key} (${short(ask.name.id)} #${ask.token})`;
    default: {
      const names = ask.names?.map(({ key, id }) => (id === null ? key : `${key} (${short(id)})`)) ?? [
        "everything",
      ];
      return `${ask.do} ${names.join(" ")}`;
    }
  }
}

function answered(answer: Operation["answer"], zeroMs: number): string {
  if (answer.is === "unknown") return "its process died first";
  if (answer.is === "refused") return `${answer.code} ${answer.holders.map(short).join(" ")}`;
  const ended = answer.ended.map(({ id, forced }) => `ended ${short(id)}${forced ? " by force" : ""}`);
  return [...answer.leases.map((lease) => show(lease, zeroMs)), ...ended].join(", ") || "nothing";
}

function show({ key, id, token, valid, expiresMs }: Seen, zeroMs: number): string {
  const until = expiresMs === null ? "" : ` until ${(expiresMs - zeroMs).toFixed(0)}`;
  return `${key} ${short(id)} #${token}${until}${valid ? "" : " (lapsed)"}`;
}

function describe({ leases, highest }: State): string {
  const held = leases.map(({ key, within, id, token, agent, session }) => {
    const where = within === null ? key : `${key}@${within}`;
    return `${where} ${short(id)} #${token ?? "?"} of ${agent}/${session ?? "nobody yet"}`;
  });
  return `${held.join(", ") || "nothing is held"}; highest token ${highest}`;
}

/** Ids of one instant begin alike. */
function short(id: string | null): string {
  return id === null ? "?" : id.slice(-6);
}
