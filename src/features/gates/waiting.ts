import type { Ulid } from "../../kernel/ids";
import { shellWord } from "../../kernel/printing";
import type { IssueReader } from "../issues/reader";
import { isFound } from "../issues/resolve";
import { readRegistry } from "./registry";
import { pendingGates } from "./results";

/** A gate that an issue still has to pass; without a kind, one that nobody has defined here. */
export interface PendingGate {
  readonly key: string;
  readonly kind: "manual" | "automated" | null;
}

/** An automated one is passed by its run, any other by the word of those who may. */
export function passCommand(shortId: string, { key, kind }: PendingGate): string {
  return `cotenant gate ${kind === "automated" ? "run" : "pass"} ${shortId} ${shellWord(key)}`;
}

/** What issues wait for that are done but for their gates. */
export async function gatesPending(
  reader: IssueReader,
  ids: readonly Ulid[],
): Promise<Map<Ulid, readonly PendingGate[]>> {
  const pending = new Map<Ulid, readonly PendingGate[]>();
  if (ids.length === 0) return pending;
  const { gates } = await readRegistry(reader.sources.platform, reader.here.root);
  for (const [id, found] of await reader.findAll(ids))
    if (isFound(found))
      pending.set(
        id,
        (await pendingGates(reader, found)).map((key) => ({ key, kind: gates.get(key)?.kind ?? null })),
      );
  return pending;
}
