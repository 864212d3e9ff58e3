import { type ByteText, bytesOf, byteTextOf } from "../../git/byte-text";

/**
 * What Git's trees cannot say: permissions beyond "executable", and directories without files. Mostly they are all alike,
 * so it holds the usual ones and the exceptions.
 */
export interface Manifest {
  readonly usual: { readonly file: number; readonly executable: number; readonly directory: number };
  readonly files: ReadonlyMap<ByteText, number>;
  readonly directories: ReadonlyMap<ByteText, number>;
  /** Those that no file is in. */
  readonly unlisted: ReadonlyMap<ByteText, number>;
}

const MAGIC = "cotenant manifest 1";

export interface Modes {
  /** Of files that are no links. */
  readonly files: Iterable<readonly [ByteText, number]>;
  readonly directories: Iterable<readonly [ByteText, number]>;
  readonly unlisted: Iterable<readonly [ByteText, number]>;
}

export function makeManifest({ files, directories, unlisted }: Modes): Manifest {
  const counts = { file: new Map<number, number>(), executable: new Map(), directory: new Map() };
  const [allFiles, allDirectories] = [[...files], [...directories]];
  for (const [, mode] of allFiles) count(isExecutable(mode) ? counts.executable : counts.file, mode);
  for (const [, mode] of allDirectories) count(counts.directory, mode);
  const usual = {
    file: commonest(counts.file, 0o644),
    executable: commonest(counts.executable, 0o755),
    directory: commonest(counts.directory, 0o755),
  };
  const usualFor = (mode: number) => (isExecutable(mode) ? usual.executable : usual.file);
  return {
    usual,
    files: new Map(allFiles.filter(([, mode]) => mode !== usualFor(mode))),
    directories: new Map(allDirectories.filter(([, mode]) => mode !== usual.directory)),
    unlisted: new Map(unlisted),
  };
}

/** Git's own idea of it. */
export function isExecutable(mode: number): boolean {
  return (mode & 0o100) !== 0;
}

export function encodeManifest({ usual, files, directories, unlisted }: Manifest): Uint8Array {
  const records = [
    MAGIC,
    `usual ${octal(usual.file)} ${octal(usual.executable)} ${octal(usual.directory)}`,
    ...[...files].map(([path, mode]) => `f ${octal(mode)} ${path}`),
    ...[...directories].map(([path, mode]) => `d ${octal(mode)} ${path}`),
    ...[...unlisted].map(([path, mode]) => `h ${octal(mode)} ${path}`),
  ];
  return bytesOf(`${records.join("\0")}\0`);
}

/** Null for anything else. */
export function decodeManifest(bytes: Uint8Array): Manifest | null {
  const [magic, head = "", ...records] = byteTextOf(bytes).split("\0");
  const usual = /^usual ([0-7]{3}) ([0-7]{3}) ([0-7]{3})$/.exec(head);
  if (magic !== MAGIC || usual === null || records.pop() !== "") return null;
  const [file, executable, directory] = usual.slice(1).map((mode) => Number.parseInt(mode, 8)) as [
    number,
    number,
    number,
  ];
  const maps = { f: new Map<ByteText, number>(), d: new Map(), h: new Map() };
  for (const record of records) {
    const found = /^([fdh]) ([0-7]{3}) /.exec(record);
    const path = record.slice(6);
    if (found === null || path === "") return null;
    maps[found[1] as "f" | "d" | "h"].set(path, Number.parseInt(found[2]!, 8));
  }
  return {
    usual: { file, executable, directory },
    files: maps.f,
    directories: maps.d,
    unlisted: maps.h,
  };
}

function octal(mode: number): string {
  return (mode & 0o777).toString(8).padStart(3, "0");
}

function count(counts: Map<number, number>, mode: number): void {
  counts.set(mode, (counts.get(mode) ?? 0) + 1);
}

function commonest(counts: ReadonlyMap<number, number>, otherwise: number): number {
  let [best, most] = [otherwise, 0];
  for (const [mode, times] of counts) if (times > most) [best, most] = [mode, times];
  return best;
}
