import type { Workspace } from "../coordinator/workspace";
import { rulesHere, withMore } from "../enforce/path-rules";
import { parseTrailers } from "../enforce/trailers";
import { CotenantError } from "../errors/cotenant-error";
import { printable } from "../kernel/ids";
import { pathJudge } from "../kernel/path-rules";
import type { PathChange } from "../objects/commit-text";
import { CommitReader } from "../objects/commits";
import type { ObjectDatabase } from "../objects/database";
import type { ObjectId } from "../objects/object-name";
import { MODES } from "../objects/tree";
import { lookUp } from "../objects/tree-editing";
import { allowedBy } from "../publish/allowing";
import { pointAt } from "../publish/base";
import type { Wanted } from "../publish/draft";
import { pathObjections, refusePaths } from "../publish/path-rules";
import { rulesAt } from "../publish/planning";
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
  entry: LandEntry,
  at: { readonly onto: ObjectId; readonly commit: ObjectId; readonly makers: readonly Told[] },
): Promise<CotenantError | null> {
  const { surroundings, repository, config } = workspace;
  const { values } = config;
  const reader = new CommitReader(surroundings.git, { cwd: repository.worktreeRoot });
  const changes = await reader.difference(at.onto, at.commit);
  const base = await pointAt(objects, at.onto);
  const named = at.makers.flatMap(({ message }) => parseTrailers(message).agentIds);
  const makers = named.length > 0 ? [...new Set(named)] : [entry.addedBy];
  const allowed = allowedBy(config);
  try {
    if (changes.length > values["publish.max_paths"])
      throw tooMany(changes.length, values["publish.max_paths"]);
    const draft = await draftOf(objects, changes, values["publish.max_file_bytes"]);
    const before = await lookUp(objects, base.tree, draft.keys());
    refusePaths(
      pathObjections(draft, before, {
        forbiddenPaths: values["publish.forbidden_paths"],
        allowSecretsIn: allowed,
        maxPaths: values["publish.max_paths"],
        maxFileBytes: values["publish.max_file_bytes"],
        ignoreCase: repository.config.ignoreCase,
        publisher: makers.join(", "),
        judge: pathJudge(withMore(rulesHere(workspace), await rulesAt(objects, base)), makers),
        allowsSubmodules: true,
      }),
    );
    refuseSecrets(await findSecrets(objects, draft, before, allowed), allowed);
    return null;
  } catch (error) {
    if (error instanceof CotenantError && RULES.includes(error.code)) return error;
    throw error;
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
