import { type Fact, type FactName, type FactRecord, parseFactName } from "../kernel/facts";
import { isRefusal } from "../kernel/refusal";
import type { Line } from "./envelope";
import { count, list, object, text, WireError } from "./wire";

/** Facts as a line carries them: `{"stamp:01J…": {…}, "intent:01J…": null}`. */
export function factsToWire(facts: ReadonlyMap<FactName, Fact | null>): Record<string, unknown> {
  return facts.size === 0 ? {} : { facts: Object.fromEntries(facts) };
}

/** What a line says of facts. Throws WireError on nonsense. */
export function* factsOf(line: Line): Generator<[FactName, FactRecord | null]> {
  const { payload, type, sequence } = line;
  if (payload["facts"] === undefined || type === "log.checkpoint") return;
  for (const [name, value] of Object.entries(object(payload["facts"])))
    yield [factName(name), value === null ? null : { value: object(value), sequence }];
}

/** Facts as a checkpoint carries them, and as the index does, one in a file. */
export function factToWire(name: FactName, { value, sequence }: FactRecord): Record<string, unknown> {
  return { name, sequence, value };
}

export function factFromWire(wire: unknown): [FactName, FactRecord] {
  const w = object(wire);
  return [factName(text(w, "name")), { value: object(w["value"]), sequence: count(w, "sequence") }];
}

export function factsFromWire(checkpoint: Readonly<Record<string, unknown>>): [FactName, FactRecord][] {
  return checkpoint["facts"] === undefined ? [] : list(checkpoint, "facts").map(factFromWire);
}

/** It becomes part of a file name: what does not look like one of ours must not get there. */
function factName(name: string): FactName {
  const parsed = parseFactName(name);
  if (isRefusal(parsed)) throw new WireError(parsed.message);
  return parsed;
}
