import { worktreeFilePath } from "../../../identity/worktree-file";
import type { LeaseRef } from "../../../kernel/commands";
import { printable } from "../../../kernel/ids";
import { count, some } from "../../../kernel/printing";
import { removedStores } from "../../../store/dismantle";
import { type IndexState, surveyIndex } from "../../../store/index-survey";
import { decodeSecret, type SecretEntry } from "../../../store/secrets";
import { type Check, error, note, ok, type Reported } from "../finding";
import { type Patient, readOrNull } from "../patient";
import { type TreeEntry, treeBelow } from "../tree";

/** Every line of every segment: its sum, that it follows the one before, and that no number is missing. */
export const logCheck: Check = {
  name: "log",
  async look(patient) {
    const { exists, damage, torn, replay, archived, missing } = await patient.log();
    if (!exists && damage === null) return [ok("there is no log yet")];
    const found: Reported[] = [];
    const { log } = patient.layout;
    if (damage !== null) {
      const { offset, sequence, why } = damage;
      const where = exists ? `the log is damaged at byte ${offset}: ${why}` : why;
      const next = "run: cotenant recover (it keeps the damaged file)";
      found.push(error("E_LOG_CORRUPT", where, next, { offset, sequence, path: log }));
    }
    if (torn !== null)
      found.push(
        note("the log ends in a line that nobody was promised; the next writer sets it aside", null, {
          offset: torn.offset,
        }),
      );
    found.push(...damagedSegments(patient, archived));
    if (missing.length > 0)
      found.push(
        note(
          `the archive lacks ${some(missing.map((n) => `segment ${n}`))}: history begins later or has a gap`,
          null,
          {
            missing: missing.slice(0, 100),
          },
        ),
      );
    const lines = replay.counted + archived.reduce((sum, segment) => sum + segment.lines, 0);
    const data = { lines, segments: archived.length + 1, sequence: replay.head.sequence };
    const whole = `${count(lines, "line")} in ${count(data.segments, "segment")}, all whole and in order`;
    return found.some(({ level }) => level === "error") ? found : [...found, ok(whole, data)];
  },
};

function damagedSegments(
  { layout }: Patient,
  archived: Awaited<ReturnType<Patient["log"]>>["archived"],
): Reported[] {
  return archived.flatMap(({ name, damage }) => {
    if (damage === null) return [];
    const path = `${layout.archive}/${name}`;
    return [
      error(
        "E_LOG_CORRUPT",
        `an archived segment is damaged: ${name}, ${damage}; history is not to be trusted there, leases are`,
        "bring it back from a backup, or keep it elsewhere if nobody wants its history: no lease depends on it",
        { path, why: damage },
      ),
    ];
  });
}

const HARMLESS: Readonly<Record<Exclude<IndexState, "fits" | "wrong">, string>> = {
  absent: "there is no index; the next writer makes it from the log",
  "other-boot": "the index is from an earlier boot; the next writer makes it anew from the log",
  unfinished: "the index is half made; the next writer makes it anew from the log",
  "other-log": "the index does not belong to this log; the next writer makes it anew",
  behind: "the index lacks the newest lines of the log; the next writer adds them",
};

/** The log replayed in memory against the small files that commands go by. */
export const indexCheck: Check = {
  name: "index",
  async look({ platform, layout, hasStore }) {
    if (!hasStore) return [ok("there is no index yet")];
    const { state, differences, leases } = await surveyIndex(platform, layout);
    if (state === "fits")
      return [ok(`the index says what the log says (${count(leases, "lease")})`, { leases })];
    if (state !== "wrong") return [note(HARMLESS[state], null, { state })];
    const shown = differences.map((text) => printable(text, 200));
    return [
      error(
        "E_LOG_CORRUPT",
        `the index does not say what the log says: ${some(shown)}`,
        `move ${layout.index} somewhere else; the next writer makes it anew from the log, and nothing is lost`,
        { state, differences: shown.slice(0, 20), path: layout.index },
      ),
    ];
  },
};

/** Asked for lately: whoever asked may not have its lease yet. */
const RECENT_MS = 3600 * 1000;

/** Secrets whose leases have ended prove nothing, and should not lie around. Only counted, never shown. */
export const secretsCheck: Check = {
  name: "secrets",
  async look(patient) {
    const entries = await readable(patient);
    if (entries.length === 0) return [ok("no secrets are kept")];
    const recentMs = patient.platform.clock.wallMs() - RECENT_MS;
    const old = entries.filter(({ madeAtMs }) => madeAtMs <= recentMs);
    const refs: LeaseRef[] = old.flatMap(({ leases }) =>
      leases.map(({ key, leaseId }) => ({ key, leaseId })),
    );
    const needed = new Set<string>([
      ...(await patient.leases()).map(({ lease }) => lease.leaseId),
      // Taken from their holders: the secret is still needed to be told so.
      ...(await patient.coordinator.endings(refs)).map(({ leaseId }) => leaseId),
    ]);
    const useless = old.filter(({ leases }) => !leases.some(({ leaseId }) => needed.has(leaseId))).length;
    const data = { secrets: entries.length, useless };
    if (useless === 0) return [ok(count(entries.length, "secret"), data)];
    const message = `${count(useless, "secret")} of ended leases: they prove nothing any more`;
    return [note(message, "each agent's own 'cotenant gc' forgets them", data)];
  },
};

/** Other users' secrets are none of ours. */
async function readable({ platform, layout }: Patient): Promise<SecretEntry[]> {
  const { entries } = await treeBelow(platform.files, layout.secrets);
  const found: SecretEntry[] = [];
  for (const { path, stat } of entries) {
    if (stat.kind !== "file" || !path.endsWith(".json")) continue;
    const bytes = await readOrNull(platform.files, path);
    for (const line of new TextDecoder().decode(bytes ?? new Uint8Array()).split("\n")) {
      const entry = line === "" ? null : decodeSecret(line);
      if (entry !== null) found.push(entry);
    }
  }
  return found;
}

/** A younger one may belong to a writer at work. */
const YOUNG_MS = 60_000;

interface Kind {
  readonly what: string;
  readonly next: string | null;
  readonly fits: (path: string) => boolean;
  /** Kept on purpose, so that age does not matter. */
  readonly isKept?: true;
}

const KINDS: readonly Kind[] = [
  {
    what: "unfinished writes, which mean nothing",
    next: null,
    fits: (path) => /\.(?:new|next|new-[0-9a-f]{12})$/.test(path),
  },
  {
    what: "damaged files that were set aside",
    next: "delete them once nobody wants to look at them",
    fits: (path) => /\.damaged-[\w-]+(?:\.jsonl)?$/.test(path),
    isKept: true,
  },
  {
    what: "torn ends of the log that were set aside",
    next: "delete them once nobody wants to look at them",
    fits: (path) => /\/archive\/torn-[^/]+$/.test(path),
    isKept: true,
  },
  {
    what: "copies of the log that were left behind after a failed sync",
    next: "delete them once the disk is known to be sound",
    fits: (path) => /\/archive\/suspect-[^/]+$/.test(path),
    isKept: true,
  },
  {
    what: "closed log segments that are not packed",
    next: "run: cotenant gc",
    fits: (path) => /\/archive\/claims-\d{6}\.jsonl$/.test(path),
    isKept: true,
  },
];

/** What somebody who died, or something that was mended, has left behind. */
export const leftoversCheck: Check = {
  name: "leftovers",
  async look(patient) {
    const { platform, layout, dataDirectory, repository } = patient;
    const isOurs = (path: string) =>
      !path.includes("/issues/") || /\/issues\/[^/]+(?:\/issue\.json[^/]*)?$/.test(path);
    const isIdentity = (path: string) => path.startsWith(worktreeFilePath(repository.gitDir));
    const entries = [
      ...(await treeBelow(platform.files, layout.root)).entries,
      ...(await treeBelow(platform.files, dataDirectory, isOurs)).entries,
      ...(await treeBelow(platform.files, repository.gitDir, isIdentity)).entries,
    ];
    const found = [
      ...KINDS.flatMap((kind) => ofKind(patient, kind, entries)),
      ...(await halfRemoved(patient)),
    ];
    const censuses = entries.filter(({ path }) => path.startsWith(`${layout.index}/census-`)).length - 1;
    if (censuses > 0)
      found.push(note(`${count(censuses, "census", "censuses")} of an earlier index`, "run: cotenant gc"));
    return found.length === 0 ? [ok("none")] : found;
  },
};

function ofKind(
  { platform }: Patient,
  { what, next, fits, isKept }: Kind,
  entries: readonly TreeEntry[],
): Reported[] {
  const oldMs = platform.clock.wallMs() - YOUNG_MS;
  const paths = entries
    .filter(({ path, stat }) => stat.kind === "file" && fits(path) && (isKept || stat.mtimeMs < oldMs))
    .map(({ path }) => path);
  if (paths.length === 0) return [];
  const names = paths.map((path) => path.slice(path.lastIndexOf("/") + 1));
  return [note(`${what}: ${some(names)}`, next, { paths: paths.slice(0, 100) })];
}

async function halfRemoved({ platform, layout }: Patient): Promise<Reported[]> {
  const paths = await removedStores(platform.files, layout);
  if (paths.length === 0) return [];
  return [note("a 'deinit' that was not finished", "run: cotenant deinit (again)", { paths })];
}
