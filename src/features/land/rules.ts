import { pathRulesFrom } from "../../config/path-rules";
import { configError } from "../../config/problem";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { PathChange } from "../../git/commit-text";
import { CommitReader } from "../../git/commits";
import { ObjectDatabase } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import { MODES } from "../../git/tree";
import { lookUp } from "../../git/tree-editor";
import { printable } from "../../kernel/ids";
import { pathJudge, RULES_FILE } from "../../kernel/path-rules";
import { rulesHere, withMore } from "../hooks/path-rules";
import { parseTrailers } from "../hooks/trailers";
import { type Allowed, allowedBy } from "../publish/allowances";
import { type Point, pointAt } from "../publish/base";
import type { Wanted } from "../publish/draft";
import { type PathRules, pathObjections, refusePaths } from "../publish/path-rules";
import { rulesAt } from "../publish/planner";
import { findSecrets, refuseSecrets } from "../publish/secrets";
import type { LandEntry } from "./entry";
import type { Told } from "./message";

/**
 * What a publish would refuse of the paths that an entry changes on its target: rules of paths, forbidden ones, sizes, links
 * and secrets. Answers the refusal; null where there is none.
 */
export async function refusalOf(
  workspace: Workspace,
  objects: ObjectDatabase,
  entry: Pick<LandEntry, "commit" | "addedBy" | "method">,
  at: {
    readonly onto: ObjectId;
    readonly commit: ObjectId;
    readonly makers: readonly Pick<Told, "message">[];
  },
): Promise<CotenantError | null> {
  const { surroundings, repository, config } = workspace;
  const { values } = config;
  const reader = new CommitReader(surroundings.git, { cwd: repository.worktreeRoot });
  const base = await pointAt(objects, at.onto);
  const makers = makersOf(entry, at.makers);
  const allowed = allowedBy(config);
  try {
    const changes = await reader.difference(at.onto, at.commit);
    if (changes.length > values["publish.max_paths"])
      throw tooMany(changes.length, values["publish.max_paths"]);
    const draft = await draftOf(objects, changes, values["publish.max_file_bytes"]);
    const before = await lookUp(objects, base.tree, draft.keys());
    const rules = {
      forbiddenPaths: values["publish.forbidden_paths"],
      allowSecretsIn: allowed,
      maxPaths: values["publish.max_paths"],
      maxFileBytes: values["publish.max_file_bytes"],
      ignoreCase: repository.config.ignoreCase,
      publisher: makers.join(", "),
      judge: pathJudge(withMore(rulesHere(workspace), await rulesAt(objects, base)), makers),
      allowsSubmodules: true,
    };
    refusePaths(pathObjections(draft, before, rules));
    refuseSecrets(await findSecrets(objects, draft, before, allowed), allowed);
    const broken = await brokenSettings(draft);
    if (broken !== null) return broken;
    if (entry.method === "squash") return null;
    const passing = { rules: { ...rules, judge: null }, allowed, known: new Set(oidsOf(changes)) };
    await refuseInPassing(objects, reader, { base, tip: entry.commit, onto: at.onto }, passing);
    return null;
  } catch (error) {
    if (error instanceof CotenantError && RULES.includes(error.code)) return error;
    throw error;
  }
}

/** Settings that no client reads would stop everybody on the target, the merge queue as well. */
async function brokenSettings(draft: ReadonlyMap<string, Wanted | null>): Promise<CotenantError | null> {
  const content = draft.get(RULES_FILE)?.content ?? null;
  if (content === null) return null;
  const { problems, others } = await pathRulesFrom(RULES_FILE, content);
  return problems.length + others.length === 0 ? null : configError([...problems, ...others]);
}

/**
 * The same of a branch that leaves this machine to be merged elsewhere. It is compared with where it parted from its target; what
 * one of its commits adds and a later one takes away counts, for all of them are pushed.
 */
export async function pushRefusalOf(
  workspace: Workspace,
  { commit, tip, addedBy }: { readonly commit: ObjectId; readonly tip: ObjectId; readonly addedBy: string },
): Promise<CotenantError | null> {
  const { surroundings, repository } = workspace;
  const reader = new CommitReader(surroundings.git, { cwd: repository.worktreeRoot });
  const [onto = tip] = await reader.mergeBases(tip, commit);
  const makers = await reader.read(
    await reader.list({ names: [commit], options: ["--no-merges", "--not", onto, "--not"] }),
  );
  const objects = new ObjectDatabase(surroundings.platform, surroundings.git, repository);
  try {
    return await refusalOf(
      workspace,
      objects,
      { commit, addedBy, method: "merge" },
      { onto, commit, makers },
    );
  } finally {
    await objects.close();
  }
}

/** As a push is judged: by what each commit says, and where it says nothing by who brings it. */
function makersOf(
  { addedBy }: Pick<LandEntry, "addedBy">,
  commits: readonly Pick<Told, "message">[],
): string[] {
  const named = commits.flatMap(({ message }) => {
    const { agentIds } = parseTrailers(message);
    return agentIds.length > 0 ? agentIds : [addedBy];
  });
  return named.length > 0 ? [...new Set(named)] : [addedBy];
}

const oidsOf = (changes: readonly PathChange[]) => changes.flatMap(({ oid }) => (oid === null ? [] : [oid]));

/**
 * What the branch's own commits bring along and later ones take away again: it stays in the target's history, for everybody
 * who fetches it. A squash leaves it out.
 */
async function refuseInPassing(
  objects: ObjectDatabase,
  reader: CommitReader,
  { base, tip, onto }: { readonly base: Point; readonly tip: ObjectId; readonly onto: ObjectId },
  {
    rules,
    allowed,
    known,
  }: { readonly rules: PathRules; readonly allowed: Allowed; readonly known: Set<ObjectId> },
): Promise<void> {
  for (const commit of await reader.changing({ names: [tip], options: ["--not", onto, "--not"] })) {
    const passing = commit.changes.filter(({ oid }) => oid !== null && !known.has(oid));
    if (passing.length === 0) continue;
    for (const oid of oidsOf(passing)) known.add(oid);
    try {
      const draft = await draftOf(objects, passing, rules.maxFileBytes);
      const before = await lookUp(objects, base.tree, draft.keys());
      refusePaths(pathObjections(draft, before, rules));
      refuseSecrets(await findSecrets(objects, draft, before, allowed), allowed);
    } catch (error) {
      if (!(error instanceof CotenantError) || !RULES.includes(error.code)) throw error;
      const name = commit.oid.slice(0, 12);
      throw error.with({
        message: `in commit ${name} of the branch: ${error.message}`,
        hint: "the files as they are now pass: have the commits land as one, which leaves that one out (land add --method squash), or rewrite it",
        data: { commit: commit.oid },
      });
    }
  }
}

/** Refusals that are about what the entry changes; anything else is nobody's fault. */
const RULES: readonly string[] = ["E_PATH_RULE", "E_POLICY", "E_SECRET_FOUND", "E_LIMIT", "E_PATH_ESCAPE"];

async function draftOf(
  objects: ObjectDatabase,
  changes: readonly PathChange[],
  maxFileBytes: number,
): Promise<Map<string, Wanted | null>> {
  const draft = new Map<string, Wanted | null>();
  for (const { path, oid, mode } of changes) {
    if (oid === null || mode === null) draft.set(path, null);
    else if (mode === MODES.submodule) draft.set(path, { mode, oid, content: null });
    else {
      const size = (await objects.look(oid))?.size ?? 0;
      if (size > maxFileBytes) throw tooLarge(path, size, maxFileBytes);
      draft.set(path, { mode, oid, content: await objects.readBlob(oid) });
    }
  }
  return draft;
}

function tooMany(count: number, limit: number): CotenantError {
  return new CotenantError("E_LIMIT", `${count} paths are to change; publish.max_paths allows ${limit}`);
}

function tooLarge(path: string, size: number, limit: number): CotenantError {
  const why = `it has ${size} bytes; publish.max_file_bytes allows ${limit}`;
  return new CotenantError("E_LIMIT", `${printable(path, 200)}: ${why}`, {
    data: { paths: [printable(path, 500)] },
  });
}
