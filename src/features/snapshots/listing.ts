import { permissionError } from "../../errors/cotenant-error";
import { type ByteText, byteTextOf } from "../../git/byte-text";
import { MODES } from "../../git/tree";
import { printable } from "../../kernel/ids";
import type { Git } from "../../platform/git";
import { ask, gitFailure, LONG_MS } from "../worktrees/git-calls";

/** A working tree and the Git directory that belongs to it, wherever the tree is right now. */
export interface TreePlace {
  readonly root: string;
  readonly gitDir: string;
  readonly commonDir: string;
}

interface Listing {
  /** Whatever may be a file, a link or a submodule, each once, in the order of their bytes; some may be gone. */
  readonly paths: readonly ByteText[];
  /** Repositories in it that Git does not track. */
  readonly nested: readonly ByteText[];
}

/** What Git said, to see whether it says the same again; made into a listing only where it does not. */
export interface Listed {
  readonly mark: string;
  parse(): Listing;
}

/** Which names belong to a snapshot: by Git's own rules about what is tracked and what is ignored. */
export async function listNames(
  git: Git,
  place: TreePlace,
  withIgnored: boolean,
  sha256: (data: Uint8Array) => string,
): Promise<Listed> {
  const call = async (...flags: string[]) => {
    const args = [...gitPlace(place), "ls-files", "-z", "--exclude-standard", ...flags];
    const options = { cwd: place.root, timeoutMs: LONG_MS, env: { GIT_OPTIONAL_LOCKS: "0" } };
    const { status, stdout, stderr } = await git.run(args, options);
    if (status !== 0)
      throw gitFailure(args, { cwd: place.root, status, stderr }, "listing the worktree's files");
    refuseUnread(stderr);
    return stdout;
  };
  const [usual, ignored] = await Promise.all([
    call("--cached", "--others"),
    withIgnored ? call("--others", "--ignored") : null,
  ]);
  const mark = sha256(usual) + (ignored === null ? "" : sha256(ignored));
  return { mark, parse: () => parseNames(usual, ignored) };
}

/** Git passes over what it may not open, with a word that nobody hears; then it would be missing from the snapshot. */
function refuseUnread(stderr: string): void {
  const directory = /could not open directory '([^']*)'/.exec(stderr)?.[1];
  if (directory === undefined) return;
  throw permissionError(
    `${printable(directory, 300)} may not be read, so it cannot be kept`,
    "change its permissions, have Git ignore it, or let its owner take the snapshot",
    { path: printable(directory, 300) },
  );
}

export function gitPlace({ root, gitDir }: TreePlace): string[] {
  return ["--git-dir", gitDir, "--work-tree", root];
}

function parseNames(usual: Uint8Array, ignored: Uint8Array | null): Listing {
  const all = new Set<ByteText>();
  const nested = new Set<ByteText>();
  const add = (name: ByteText) => {
    if (name.endsWith("/")) nested.add(name.slice(0, -1));
    else all.add(name);
  };
  for (const name of split(usual)) if (!isIdentity(name)) add(name);
  // What git ignores of ours belongs to one worktree alone.
  if (ignored !== null) for (const name of split(ignored)) if (!name.startsWith(".cotenant/")) add(name);
  return { paths: [...all].sort(byBytes), nested: [...nested].sort(byBytes) };
}

/** Where earlier versions had a worktree's identity: what is restored must not take itself for the original. */
function isIdentity(name: ByteText): boolean {
  return /^\.cotenant\/worktree\.json/.test(name);
}

export function byBytes(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function split(bytes: Uint8Array): ByteText[] {
  const text = byteTextOf(bytes);
  const names = text.split("\0");
  names.pop();
  return names;
}

/** One entry of the user's index. */
export interface Staged {
  readonly path: ByteText;
  readonly mode: string;
  readonly oid: string;
  /** 0, or 1 to 3 where a merge is not settled. */
  readonly stage: number;
  /** Left out of the working tree on purpose. */
  readonly isSkipped: boolean;
}

export async function readIndex(git: Git, place: TreePlace): Promise<Staged[]> {
  const bytes = await ask(
    git,
    [...gitPlace(place), "ls-files", "-z", "-s", "-t"],
    { cwd: place.root, timeoutMs: LONG_MS, env: { GIT_OPTIONAL_LOCKS: "0" } },
    "reading the index",
  );
  const staged: Staged[] = [];
  for (const record of split(bytes)) {
    const found = /^(\S) (\d{6}) ([0-9a-f]+) (\d)\t/.exec(record);
    if (found === null) continue;
    const [head, tag, mode, oid, stage] = found as unknown as [string, string, string, string, string];
    staged.push({ path: record.slice(head.length), mode, oid, stage: Number(stage), isSkipped: tag === "S" });
  }
  return staged;
}

export function isSubmodule({ mode }: Pick<Staged, "mode">): boolean {
  return mode === MODES.submodule;
}
