import { fromByteText } from "../../../git/byte-text";
import { printable } from "../../../kernel/ids";
import { type Descriptor, warningsOf } from "../descriptor";
import { shortSnapshotId } from "../descriptor-store";

/** A snapshot as programs see it. */
export function snapshotJson(descriptor: Descriptor, all: readonly Descriptor[]): Record<string, unknown> {
  const warnings = warningsOf(descriptor);
  return {
    ...descriptor,
    short_id: shortSnapshotId(descriptor.snapshot_id, all),
    warning: warnings.length > 0,
    warnings,
  };
}

const WORDS: Readonly<Record<string, string>> = {
  best_effort: "best effort: files may be from different moments",
  shared_worktree: "high risk: taken in a shared worktree, where no lock keeps writers apart",
  repositories_by_commit: "repositories inside are kept by their commit alone",
  left_out: "something is left out",
};

export function warningWords(descriptor: Descriptor): string[] {
  const look = `: 'cotenant info ${descriptor.snapshot_id}' says what`;
  return warningsOf(descriptor).map((name) => `${WORDS[name] ?? name}${name === "left_out" ? look : ""}`);
}

export function noteLines(descriptor: Descriptor): string[] {
  return warningWords(descriptor).map((words) => `  note: ${words}`);
}

export function bytesText(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [value, unit] = [bytes, 0];
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

export function noteText({ note, tags, automatic }: Descriptor): string {
  return [
    ...tags.map((tag) => `[${tag}]`),
    ...(automatic === null ? [] : [`(before ${automatic})`]),
    ...(note === null ? [] : [printable(note, 200)]),
  ].join(" ");
}

/** A path of a tree, as bytes. */
export function shownPath(path: string): string {
  return printable(fromByteText(path), 1_000);
}
