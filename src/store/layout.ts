import { utf8Length } from "../kernel/keys";

/** Where everything of the control plane lives. One place knows the names. */
export interface Layout {
  readonly root: string;
  readonly log: string;
  readonly nextLog: string;
  readonly archive: string;
  readonly index: string;
  readonly applied: string;
  readonly synced: string;
  readonly queue: string;
  readonly locks: string;
  readonly mutex: string;
  readonly syncFailed: string;
  readonly renaming: string;
  readonly tidying: string;
  readonly secrets: string;
  readonly heartbeat: string;
  readonly guard: string;
  readonly agentIndex: string;
  readonly flatIndex: string;
  readonly allowNetwork: string;
}

export function layoutOf(controlDirectory: string): Layout {
  const at = (name: string) => `${controlDirectory}/${name}`;
  return {
    root: controlDirectory,
    log: at("claims.jsonl"),
    nextLog: at("claims.jsonl.next"),
    archive: at("archive"),
    index: at("index"),
    applied: at("index/applied"),
    synced: at("index/synced"),
    queue: at("queue"),
    locks: at("locks"),
    mutex: at("locks/claims.lock"),
    syncFailed: at("locks/sync-failed"),
    renaming: at("locks/renaming"),
    tidying: at("locks/tidying.lock"),
    secrets: at("secrets"),
    heartbeat: at("heartbeat"),
    guard: at("guard"),
    agentIndex: at("agent-index"),
    flatIndex: at("claims.index.json"),
    allowNetwork: at("allow-network-fs"),
  };
}

export interface Modes {
  readonly file: number;
  readonly directory: number;
}

export const PRIVATE: Modes = { file: 0o600, directory: 0o700 };

/** The modes Git itself would give under `core.sharedRepository`. Secrets stay private whatever it says. */
export function modesFor(sharedRepository: string | null): Modes {
  const value = (sharedRepository ?? "umask").toLowerCase();
  if (["group", "true", "yes", "on", "1"].includes(value)) return { file: 0o660, directory: 0o2770 };
  if (["all", "world", "everybody", "2"].includes(value)) return { file: 0o664, directory: 0o2775 };
  if (/^0[0-7]{3}$/.test(value)) {
    const file = (Number.parseInt(value, 8) | 0o600) & 0o666;
    // A directory that may be read may be entered.
    return { file, directory: 0o2000 | file | 0o700 | ((file & 0o444) >> 2) };
  }
  return PRIVATE;
}

/**
 * One path segment as a file name of ours. Readable where it can be; `%` is always escaped, so that the
 * names we add ourselves (`%…`, `meta.json`, `meta@….json`) can never be met by a repository's file names.
 * Case is left alone: where the file system folds it, canonical paths are folded already.
 */
export function escapeSegment(segment: string, hash: (text: string) => string): string {
  return fitting(segment, segment.replace(/[%/\\:*?"<>|\x00-\x1f\x7f]/g, percent), hash);
}

/**
 * The name of something that is no path, likewise. Case matters in it also where file systems fold it (and
 * more letters than one would think), so that all but the plainest characters are escaped.
 */
export function escapeName(name: string, hash: (text: string) => string): string {
  return fitting(name, name.replace(/[^a-z0-9 ._@+,=()#~!-]/g, percent), hash);
}

function fitting(original: string, escaped: string, hash: (text: string) => string): string {
  let name = escaped;
  if (/^meta[.@]/i.test(name)) name = percent(name[0]!) + name.slice(1);
  // Names that cannot be, or that some file systems swallow.
  if (/^\.{1,2}$/.test(name) || /[. ]$/.test(name)) name = name.slice(0, -1) + percent(name.at(-1)!);
  const tooLong = name.length * 3 > LONGEST_NAME && utf8Length(name) > LONGEST_NAME;
  return tooLong ? `%h${hash(original).slice(0, 40)}` : name;
}

/** Room for what is added to a name, below the 255 bytes that file systems allow. */
const LONGEST_NAME = 240;

function percent(unit: string): string {
  const code = unit.charCodeAt(0);
  return code < 0x100 ? `%${hex(code, 2)}` : `%u${hex(code, 4)}`;
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, "0");
}

/** An instant as part of a file name. */
export function fileTime(wallMs: number): string {
  return new Date(wallMs).toISOString().replace(/[:.]/g, "-");
}
