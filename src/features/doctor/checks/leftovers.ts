import { worktreeFilePath } from "../../../identity/worktree-file";
import { removedStores } from "../../../store/dismantle";
import { type Check, note, ok, type Reported } from "../finding";
import type { Patient } from "../patient";
import { type TreeEntry, treeBelow } from "../tree";
import { many, some } from "../words";

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
      found.push(note(`${many(censuses, "census", "censuses")} of an earlier index`, "run: cotenant gc"));
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
