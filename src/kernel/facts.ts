import { type Branded, printable } from "./ids";
import { isRefusal, type Refusal, refuse } from "./refusal";

/**
 * What the log knows of things that are no leases: the newest stamp of an issue, an open intent, a contention. Each
 * has a name, and the last word on a name counts; null takes it back.
 */
export type Fact = Readonly<Record<string, unknown>>;

/** `<kind>:<id>`. */
export type FactName = Branded<"FactName">;

/** With the number of the line that said it. */
export interface FactRecord {
  readonly value: Fact;
  readonly sequence: number;
}

const NAME = /^[a-z][a-z-]{0,30}:[\x21-\x7e]{1,200}$/;

/** Facts travel in lines and checkpoints, many at a time. */
export const LARGEST_FACT = 16 << 10;

export function parseFactName(text: string): FactName | Refusal {
  return NAME.test(text)
    ? (text as FactName)
    : refuse("E_USAGE", `"${printable(text)}" is not the name of a fact`, {
        data: { name: printable(text) },
      });
}

/** One of ours: whoever makes a name that is none has made a mistake. */
export function factName(kind: string, id: string): FactName {
  const name = parseFactName(`${kind}:${id}`);
  if (isRefusal(name)) throw new Error(name.message);
  return name;
}

export function factKind(name: FactName): string {
  return name.slice(0, name.indexOf(":"));
}

export function factId(name: FactName): string {
  return name.slice(name.indexOf(":") + 1);
}
