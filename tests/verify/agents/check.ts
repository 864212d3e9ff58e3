import type { Entry } from "../../support/harness/journal";

/** A line of cotenant's log, as far as it says who holds what. */
interface LogLine {
  readonly event_type: string;
  readonly payload: {
    readonly leases?: readonly {
      readonly lease_id: string;
      readonly key: string;
      readonly session_id: string;
    }[];
    readonly ended?: readonly { readonly lease_id: string; readonly key: string; readonly cause?: string }[];
  };
}

/** Who holds a file from a position of the log on. */
interface Tenure {
  readonly from: number;
  readonly leaseId: string | null;
  readonly session: string | null;
}

export interface Tenures {
  /** Of each file, in the order of the log. */
  readonly byFile: ReadonlyMap<string, readonly Tenure[]>;
  readonly endings: ReadonlyMap<string, number>;
}

/** Reads the log as anybody can who has its format: whole leases in what was granted, ids in what ended. */
export function tenuresIn(log: string): Tenures {
  const byFile = new Map<string, Tenure[]>();
  const endings = new Map<string, number>();
  let at = 0;
  for (const text of log.split("\n")) {
    at += Buffer.byteLength(text) + 1;
    if (text === "") continue;
    const { payload } = JSON.parse(text) as LogLine;
    for (const { key, lease_id: id, cause } of payload.ended ?? []) {
      const file = fileOf(key);
      if (file === null) continue;
      if (cause !== undefined) endings.set(cause, (endings.get(cause) ?? 0) + 1);
      const tenures = byFile.get(file) ?? [];
      if (tenures.at(-1)?.leaseId === id) tenures.push({ from: at, leaseId: null, session: null });
    }
    for (const { key, lease_id: id, session_id: session } of payload.leases ?? []) {
      const file = fileOf(key);
      if (file === null) continue;
      const tenures = byFile.get(file) ?? [];
      byFile.set(file, tenures);
      // Renewals and heartbeats have the lease that stands.
      if (tenures.at(-1)?.leaseId !== id) tenures.push({ from: at, leaseId: id, session });
    }
  }
  return { byFile, endings };
}

function fileOf(key: string): string | null {
  return key.startsWith("file:") ? key.slice("file:".length) : null;
}

/** What should not have happened, in words. */
export function check(entries: readonly Entry[], { byFile }: Tenures): string[] {
  const broken: string[] = [];
  const open = new Map<string, Entry>();
  const last = new Map<string, Entry>();
  for (const entry of entries) {
    const { file, agent, phase } = entry;
    const other = open.get(file);
    if (phase === "end") {
      if (other?.agent === agent) {
        open.delete(file);
        broken.push(...lostMeanwhile(other, entry, byFile.get(file) ?? []));
      }
      continue;
    }
    // One that never ended was killed; whoever comes after it must have got the file since.
    if (other !== undefined && other.agent !== agent && !hasChanged(other, entry, byFile.get(file) ?? []))
      broken.push(`${agent} wrote ${file} while ${other.agent} was writing it`);
    const before = last.get(file);
    if (before !== undefined && before.agent !== agent && !hasChanged(before, entry, byFile.get(file) ?? []))
      broken.push(`${before.agent} and then ${agent} wrote ${file}, and no lease changed hands between them`);
    const holder = holderAt(byFile.get(file) ?? [], entry.log);
    if (holder === null || !agent.endsWith(`:${holder.session}`))
      broken.push(`${agent} wrote ${file}, which ${holder?.session ?? "nobody"} held`);
    open.set(file, entry);
    last.set(file, entry);
  }
  return broken;
}

function lostMeanwhile(begin: Entry, end: Entry, tenures: readonly Tenure[]): string[] {
  const [before, after] = [holderAt(tenures, begin.log), holderAt(tenures, end.log)];
  if (before?.leaseId === after?.leaseId) return [];
  return [`${begin.agent} lost ${begin.file} to ${after?.session ?? "nobody"} while it was writing it`];
}

function hasChanged(first: Entry, second: Entry, tenures: readonly Tenure[]): boolean {
  return tenures.some(({ from, session }) => from > first.log && from <= second.log && session !== null);
}

function holderAt(tenures: readonly Tenure[], log: number): Tenure | null {
  const held = tenures.filter(({ from }) => from <= log).at(-1);
  return held?.leaseId == null ? null : held;
}
