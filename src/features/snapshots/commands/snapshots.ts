import type { Workspace } from "../../../coordinator/workspace";
import { printable } from "../../../kernel/ids";
import { nodeTrees } from "../../../platform/node/trees";
import { type Darkroom, darkroomIn, readingRoomIn } from "../darkroom";
import { type Descriptor, warningsOf } from "../descriptor";
import { meantSnapshot, shortSnapshotId } from "../shelf";

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

export function darkroom(workspace: Workspace): Promise<Darkroom> {
  return darkroomIn(workspace, nodeTrees());
}

export function readingRoom(workspace: Workspace): Omit<Darkroom, "session"> {
  return readingRoomIn(workspace, nodeTrees());
}

/** The snapshot that a word means, seen from this worktree. */
export async function snapshotMeant(
  workspace: Workspace,
  word: string,
): Promise<{ readonly descriptor: Descriptor; readonly all: readonly Descriptor[] }> {
  const all = await readingRoom(workspace).shelf.all();
  const { worktreeId } = (await workspace.worktree("read")).identity;
  return { descriptor: meantSnapshot(word, all, worktreeId), all };
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
