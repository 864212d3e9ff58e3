import { DATA_PLANE_LINES } from "../../../identity/data-plane";
import { readWorktreeIdentity } from "../../../identity/worktree";
import { PROVISIONAL_GITIGNORE } from "../../../identity/worktree-file";
import { parseUlid, printable, type Ulid } from "../../../kernel/ids";
import { count, some } from "../../../kernel/printing";
import { isRefusal } from "../../../kernel/refusal";
import type { Files } from "../../../platform/platform";
import { cycleIn } from "../../issues/cycles";
import { issuesAt } from "../../issues/desk";
import { placeOfNewest, takeBackHint } from "../../issues/lost";
import { decodeIssue, type Issue, isTerminal, MAX_DESCRIPTION } from "../../issues/model";
import { readOrSet } from "../../issues/or-set";
import type { IssueReader } from "../../issues/reader";
import { type FoundIssue, isFound } from "../../issues/resolve";
import { shortId } from "../../issues/short-id";
import { COMMENTS, DEPENDENCIES, LABELS, type WrittenStamp } from "../../issues/stamps";
import { type Check, capped, error, note, ok, type Reported, warning } from "../finding";
import type { Patient } from "../patient";

const INIT = "run: cotenant init (it adds what is missing and changes nothing else)";

/** `.cotenant/`: a real directory, with the lines that keep what is of one machine out of Git. */
export const dataPlaneCheck: Check = {
  name: "data-plane",
  async look(patient) {
    const { dataDirectory, platform } = patient;
    const stat = await platform.files.lstat(dataDirectory);
    if (stat === null) return [note(`${dataDirectory} is not there yet`, "run: cotenant init", {})];
    if (stat.kind !== "directory")
      return [
        error(
          "E_PATH_ESCAPE",
          `${dataDirectory} is not a directory of this worktree, and nothing is written there`,
          "look at the symbolic link or file of that name, and put a directory in its place",
          { path: dataDirectory, kind: stat.kind },
        ),
      ];
    const found = [
      ...(await missingLines(patient, ".gitignore", "files of one worktree alone may get into commits")),
      ...(await missingLines(
        patient,
        ".gitattributes",
        "merges of files that are only appended to may conflict",
      )),
    ];
    return found.length === 0 ? [ok(dataDirectory)] : found;
  },
};

async function missingLines(
  { dataDirectory, platform }: Patient,
  name: keyof typeof DATA_PLANE_LINES,
  consequence: string,
): Promise<Reported[]> {
  const path = `${dataDirectory}/${name}`;
  const bytes = await platform.files.readFile(path);
  const text = bytes === null ? "" : new TextDecoder().decode(bytes);
  // Before `init` the first writing command looks after itself.
  if (text === PROVISIONAL_GITIGNORE || (await isProvisional(dataDirectory, platform.files))) return [];
  const present = text.split(/\r?\n/);
  const missing = DATA_PLANE_LINES[name].filter((line) => !present.includes(line));
  if (missing.length === 0) return [];
  return [warning(`${path} lacks ${missing.join(" and ")}: ${consequence}`, INIT, { path, missing })];
}

async function isProvisional(dataDirectory: string, files: Patient["platform"]["files"]): Promise<boolean> {
  const bytes = await files.readFile(`${dataDirectory}/.gitignore`);
  return bytes !== null && new TextDecoder().decode(bytes) === PROVISIONAL_GITIGNORE;
}

/** What merges, editors and killed processes left of issues: first the files of this worktree, then all together. */
export const issuesCheck: Check = {
  name: "issues",
  async look(patient) {
    const { dataDirectory, platform } = patient;
    const folder = `${dataDirectory}/issues`;
    const groups = { broken: [], odd: [], others: [] } as Record<string, Reported[]>;
    let whole = 0;
    for (const name of ((await platform.files.readDirectory(folder)) ?? []).sort()) {
      const path = `${folder}/${name}`;
      const id = parseUlid(name);
      if (isRefusal(id) || id !== name) {
        groups["others"]!.push(note(`${folder}/${printable(name)} is not an issue`, null, { path }));
        continue;
      }
      const reading = await readFile(platform.files, `${path}/issue.json`, name);
      if ("why" in reading) groups["broken"]!.push(unreadable(path, name, reading.why));
      else {
        whole++;
        groups["odd"]!.push(...oddities(path, reading.issue));
      }
      groups["odd"]!.push(...(await brokenLines(platform.files, path, id)));
    }
    const found = [...Object.values(groups).flatMap(capped), ...(await together(patient))];
    return found.length === 0 ? [ok(count(whole, "issue"), { issues: whole })] : found;
  },
};

type Reading = { readonly issue: Issue } | { readonly why: string };

async function readFile(files: Files, path: string, id: string): Promise<Reading> {
  let bytes: Uint8Array | null;
  try {
    const kind = (await files.stat(path))?.kind ?? "file";
    if (kind !== "file") return { why: "its issue.json is not a file" };
    bytes = await files.readFile(path);
  } catch {
    return { why: "its file cannot be opened" };
  }
  if (bytes === null) return { why: "it has no issue.json" };
  const text = new TextDecoder().decode(bytes);
  if (/^<{7} /m.test(text)) return { why: "it has the marks of a merge conflict" };
  const reading = decodeIssue(text);
  if ("broken" in reading) return { why: reading.broken };
  return reading.issue.id === id ? reading : { why: `it says that it is ${reading.issue.id}` };
}

function unreadable(path: string, id: string, why: string): Reported {
  const next = why.startsWith("it has no issue.json")
    ? `bring it back (git checkout -- ${path}), or remove the directory if nobody wants it`
    : `mend ${path}/issue.json`;
  return warning(`issue ${id} cannot be read: ${why}`, next, { path: `${path}/issue.json`, id });
}

function oddities(path: string, { id, title, description }: Issue): Reported[] {
  const data = { path: `${path}/issue.json`, id };
  const found: Reported[] = [];
  if (description.length > MAX_DESCRIPTION)
    found.push(
      warning(
        `issue ${id} has a description of ${(description.length / (1 << 20)).toFixed(1)} MB`,
        "put most of it into a file beside the code, and name that with 'cotenant doc add'",
        data,
      ),
    );
  if (/[\p{Cc}\u2028\u2029]/u.test(title) || /[^\P{Cc}\n\r\t]/u.test(description))
    found.push(
      warning(
        `issue ${id} has control characters in its texts`,
        `write them without: cotenant issue update ${id}`,
        data,
      ),
    );
  return found;
}

async function brokenLines(files: Files, path: string, id: Ulid): Promise<Reported[]> {
  const found: Reported[] = [];
  for (const file of [DEPENDENCIES, LABELS, COMMENTS]) {
    const where = `${path}/${file}`;
    const text = await textOf(files, where);
    if (text === null) {
      found.push(warning(`${file} of issue ${id} cannot be read`, `look at ${where}`, { path: where, id }));
      continue;
    }
    const broken = file === COMMENTS ? brokenComments(text) : readOrSet(text).broken;
    if (broken > 0)
      found.push(
        warning(
          `${count(broken, "line")} of ${file} of issue ${id} cannot be read, and ${broken === 1 ? "counts" : "count"} for nothing`,
          `mend ${where}: one JSON object on each line`,
          { path: where, id, lines: broken },
        ),
      );
  }
  return found;
}

async function textOf(files: Files, path: string): Promise<string | null> {
  try {
    const kind = (await files.stat(path))?.kind;
    if (kind === undefined) return "";
    const bytes = kind === "file" ? await files.readFile(path) : null;
    return bytes === null ? null : new TextDecoder().decode(bytes);
  } catch {
    return null;
  }
}

function brokenComments(text: string): number {
  return text.split("\n").filter((line) => line.trim() !== "" && !isObject(line)).length;
}

function isObject(line: string): boolean {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null;
  } catch {
    return false;
  }
}

// --- all copies together --------------------------------------------------------------------------------------

async function together(patient: Patient): Promise<Reported[]> {
  const { platform, repository, coordinator, place } = patient;
  const identity = await readWorktreeIdentity(platform, place.git, repository).catch(() => null);
  const worktreeId = identity?.identity.worktreeId ?? null;
  const reader = issuesAt({ platform, git: place.git, repository, coordinator, worktreeId }, null);
  const ids = await reader.ids();
  const found = await reader.findAll(ids);
  const issues = [...found.values()].filter(isFound).filter(({ isDeleted }) => !isDeleted);
  const stamps = await reader.sources.stamps(null);
  const known = new Set<string>(ids);
  return [
    ...capped(issues.flatMap((issue) => unknownNeeds(issue, known))),
    ...circles(issues, ids),
    ...capped(issues.flatMap(diverged)),
    ...capped(await unfinished(reader, stamps)),
    ...capped(lost(found, stamps)),
    ...(await thrownAway(reader, [...found.values()].filter(isFound))),
  ];
}

function unknownNeeds({ id, dependencies }: FoundIssue, known: ReadonlySet<string>): Reported[] {
  const unknown = dependencies.filter((needed) => !known.has(needed));
  if (unknown.length === 0) return [];
  const names = unknown.map((needed) => printable(needed, 40));
  return [
    warning(
      `issue ${id} waits for ${some(names)}, which nobody has`,
      `merge the branch that has it, or: cotenant dep rm ${id} ${names[0]}`,
      { id, unknown: names },
    ),
  ];
}

/** One after the other: each that is found is taken out before the next is looked for. */
function circles(issues: readonly FoundIssue[], ids: readonly Ulid[]): Reported[] {
  const edges = new Map(issues.map(({ id, dependencies }) => [id as string, [...dependencies]]));
  const found: Reported[] = [];
  for (let circle = cycleIn(edges); circle !== null && found.length < 5; circle = cycleIn(edges)) {
    const names = circle.map((id) => shortId(id, ids));
    found.push(
      warning(
        `issues wait for each other: ${names.join(" → ")}`,
        `break the circle: cotenant dep rm ${names[0]} ${names[1]}`,
        { cycle: circle },
      ),
    );
    const [from, to] = circle as [string, string];
    edges.set(
      from,
      edges.get(from)!.filter((needed) => needed !== to),
    );
  }
  return found;
}

function diverged({ id, copy, diverged: others, issue }: FoundIssue): Reported[] {
  if (others.length === 0) return [];
  const where = [copy, ...others].map(({ root }) => root ?? "HEAD");
  return [
    warning(
      `issue ${id} has two versions ${issue.stamp.version}: ${where.join(" and ")}`,
      `compare the two, and change the issue once more: cotenant issue update ${id}`,
      { id, version: issue.stamp.version, where },
    ),
  ];
}

/** Logged, and not carried out: readers see the new text all the same. */
async function unfinished(
  { sources, here }: IssueReader,
  stamps: ReadonlyMap<Ulid, WrittenStamp>,
): Promise<Reported[]> {
  const found: Reported[] = [];
  const { files, digest } = sources.platform;
  for (const id of await here.ids()) {
    const stamp = stamps.get(id);
    if (stamp === undefined) continue;
    const path = here.stagedPath(id, stamp.digest);
    if ((await files.stat(path))?.kind !== "file") continue;
    const text = await textOf(files, path);
    if (text === null || digest.sha256(text) !== stamp.digest) continue;
    found.push(
      note(`the last write of issue ${id}, by ${stamp.agentId}, was not finished`, "run: cotenant gc", {
        id,
        path,
      }),
    );
  }
  return found;
}

/** How many issues are looked for on every branch. */
const MOST_LOOKED_FOR = 20;

/** Done, or deleted, on a branch that is gone: it stays so until somebody takes it back. */
async function thrownAway(reader: IssueReader, issues: readonly FoundIssue[]): Promise<Reported[]> {
  const found: Reported[] = [];
  const suspects = issues.filter(
    ({ ahead, isDeleted, state }) => ahead !== null && (isDeleted || isTerminal({ state })),
  );
  for (const issue of suspects.slice(0, MOST_LOOKED_FOR)) {
    if ((await placeOfNewest(reader, issue)) !== null) continue;
    const { id, ahead, isDeleted, state } = issue;
    const what = isDeleted ? "deleted" : state;
    found.push(
      warning(
        `issue ${id} counts as ${what}, by ${ahead!.agentId} at ${ahead!.at}, and no branch and no worktree has that any more`,
        `take it back: ${takeBackHint(id)}`,
        { id, state: what, worktree_id: ahead!.worktreeId },
      ),
    );
  }
  return found;
}

/** Known to have been written, and to be seen nowhere. */
function lost(found: ReadonlyMap<Ulid, unknown>, stamps: ReadonlyMap<Ulid, WrittenStamp>): Reported[] {
  return [...stamps].flatMap(([id, stamp]) => {
    if (found.has(id) || stamp.isDeleted) return [];
    return [
      note(
        `issue ${id} (${stamp.state}), written by ${stamp.agentId} in ${stamp.worktreeId}, is in no worktree that can be seen from here`,
        "find the branch that has it (git log --all -- .cotenant/issues), and merge it",
        { id, worktree_id: stamp.worktreeId, state: stamp.state },
      ),
    ];
  });
}
