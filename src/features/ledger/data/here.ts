import type { Workspace } from "../../../coordinator/workspace";
import { gitFailed } from "../../../platform/git-answers";
import { ISSUES, toIds } from "../../issues/folder";
import { EVENTS, RESULTS } from "../../issues/stamps";
import { parseTree } from "../commit";
import type { LedgerCopy } from "../copy";
import {
  DATA_PATHS,
  issuePath,
  LINE_FILES,
  largestBytes,
  linesPath,
  parseDataPath,
  versionsUpTo,
} from "./paths";

/** The data of one worktree, as it stands on the disk. */
export class DataHere {
  readonly root: string;

  constructor(
    private readonly workspace: Workspace,
    private readonly copy: LedgerCopy,
  ) {
    this.root = workspace.repository.worktreeRoot;
  }

  /** Every data file with its blob id; those that are too large without. Nothing is written for it, no link followed. */
  async blobs(): Promise<{ blobs: Map<string, string>; large: readonly string[] }> {
    const { files } = this.workspace.surroundings.platform;
    const ids = toIds((await files.readDirectory(`${this.root}/${ISSUES}`)) ?? []);
    const results = toIds(
      ((await files.readDirectory(`${this.root}/.cotenant/${RESULTS}`)) ?? [])
        .filter((name) => name.endsWith(".jsonl"))
        .map((name) => name.slice(0, -".jsonl".length)),
    );
    const candidates = [
      ...ids.flatMap((id) => [issuePath(id), ...LINE_FILES.map((file) => linesPath(id, file))]),
      ...results.map((id) => linesPath(id, RESULTS)),
      linesPath(null, EVENTS),
    ];
    const { paths, large } = await this.#plainFiles(candidates);
    if (paths.length === 0) return { blobs: new Map(), large };
    const text = await this.copy.text(
      ["hash-object", "--no-filters", "--stdin-paths"],
      paths.map((path) => `${this.root}/${path}\n`).join(""),
    );
    const oids = text.split("\n");
    return { blobs: new Map(paths.map((path, i) => [path, oids[i]!])), large };
  }

  async #plainFiles(candidates: readonly string[]): Promise<{ paths: string[]; large: string[] }> {
    const { files } = this.workspace.surroundings.platform;
    const stats = new Float64Array(4 * candidates.length);
    await files.lstatAll(candidates.length, (i) => `${this.root}/${candidates[i]}`, stats);
    const there = candidates.flatMap((path, i) =>
      stats[4 * i]! >= 0 ? [{ path, isLarge: stats[4 * i + 1]! > largestBytes(parseDataPath(path)!) }] : [],
    );
    return {
      paths: there.filter(({ isLarge }) => !isLarge).map(({ path }) => path),
      large: there.filter(({ isLarge }) => isLarge).map(({ path }) => path),
    };
  }

  async read(path: string): Promise<string | null> {
    const { files } = this.workspace.surroundings.platform;
    if ((await files.lstat(`${this.root}/${path}`))?.kind !== "file") return null;
    const bytes = await files.readFile(`${this.root}/${path}`);
    return bytes === null ? null : new TextDecoder().decode(bytes);
  }

  /** What HEAD has of it: whatever equals that is nobody's unsaved work. */
  async committed(): Promise<Map<string, string>> {
    const { git } = this.workspace.surroundings;
    const { status, stdout, stderr } = await git.run(
      ["ls-tree", "-r", "-z", "--full-tree", "HEAD", "--", ...DATA_PATHS],
      { cwd: this.root, timeoutMs: 60_000 },
    );
    if (status === 0) return parseTree(new TextDecoder().decode(stdout));
    if (/not a valid object name|bad revision|ambiguous argument/i.test(stderr)) return new Map();
    throw gitFailed("Git cannot list what HEAD has", stderr);
  }

  /** Every version of each file in the history of HEAD, newest first. */
  async versions(): Promise<Map<string, string[]>> {
    const { git } = this.workspace.surroundings;
    const { status, stdout } = await git.run(versionsUpTo("HEAD"), { cwd: this.root, timeoutMs: 60_000 });
    return status === 0 ? versionsIn(new TextDecoder().decode(stdout)) : new Map();
  }
}

/** What `git log --raw -z` lists: of each file the blobs that it became, newest first. */
export function versionsIn(text: string): Map<string, string[]> {
  const versions = new Map<string, string[]>();
  const parts = text.split("\0");
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const oid = parts[at]!.trim().split(" ")[3];
    const path = parts[at + 1]!;
    if (oid === undefined) continue;
    const known = versions.get(path);
    if (known === undefined) versions.set(path, [oid]);
    else known.push(oid);
  }
  return versions;
}
