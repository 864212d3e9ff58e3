import type { Workspace } from "../coordinator/workspace";
import { CotenantError, orThrow } from "../errors/cotenant-error";
import { IssueCatalogue } from "../issues/catalogue";
import type { Issue } from "../issues/model";
import { resolveId, shortId } from "../issues/short-id";
import type { LeaseRef } from "../kernel/commands";
import { parseUlid, type Ulid } from "../kernel/ids";
import { issueKey, type LeaseKey } from "../kernel/keys";
import { isRefusal } from "../kernel/refusal";
import { nodePlatform } from "../platform/node/node";
import type { Context } from "./command";
import { byKey } from "./targets";

export function catalogueOf(workspace: Workspace): IssueCatalogue {
  const { repository, surroundings } = workspace;
  const { worktreeRoot, mainWorktreeRoot } = repository;
  return new IssueCatalogue(surroundings.platform, {
    here: worktreeRoot,
    mainWorktree: mainWorktreeRoot,
    git: surroundings.git,
  });
}

/** Issues live in a repository, or outside Git in a plain `.cotenant/` in the current directory or above it. */
export async function openCatalogue(
  context: Context,
): Promise<{ catalogue: IssueCatalogue; workspace: Workspace | null }> {
  try {
    const workspace = await context.workspace();
    return { catalogue: catalogueOf(workspace), workspace };
  } catch (error) {
    if (!(error instanceof CotenantError) || error.code !== "E_NOT_A_REPO") throw error;
    // A bare repository, Git's own directory and one that Git cannot read are no place for a plain one.
    if (error.data["git_dir"] !== undefined || error.data["git"] !== undefined) throw error;
    const platform = nodePlatform();
    const here = (await nearestData(process.cwd())) ?? process.cwd();
    return {
      catalogue: new IssueCatalogue(platform, { here, mainWorktree: null, git: null }),
      workspace: null,
    };
  }
}

async function nearestData(from: string): Promise<string | null> {
  const { files } = nodePlatform();
  for (let directory = from; ; directory = directory.slice(0, directory.lastIndexOf("/"))) {
    if ((await files.stat(`${directory}/.cotenant`))?.kind === "directory") return directory;
    if (directory === "" || !directory.includes("/")) return null;
  }
}

/** A claim as people name it: by the issue's id, short or whole, or by the lease's id. */
export async function claimRef(workspace: Workspace, typed: string): Promise<LeaseRef> {
  const whole = typed.length === 26 ? parseUlid(typed) : null;
  if (whole !== null && !isRefusal(whole)) {
    const key = orThrow(issueKey(whole));
    // The claim of an issue that is gone can still be given back by the issue's id.
    const onIssue = await workspace.coordinator.find([byKey(key)]);
    if (onIssue.length > 0) return byKey(key);
    const known = await catalogueOf(workspace).read(whole);
    return known === null ? { key: null, leaseId: whole } : byKey(key);
  }
  return byKey(orThrow(issueKey(resolveId(typed, await catalogueOf(workspace).ids()))));
}

export async function issueToClaim(
  workspace: Workspace,
  typed: string,
): Promise<{ id: Ulid; key: LeaseKey }> {
  const catalogue = catalogueOf(workspace);
  const whole = typed.length === 26 ? parseUlid(typed) : null;
  const known = whole !== null && !isRefusal(whole) && (await catalogue.read(whole)) !== null;
  const id = known ? whole : resolveId(typed, await catalogue.ids());
  return { id, key: orThrow(issueKey(id)) };
}

export function issueJson(issue: Issue, all: readonly Ulid[]): Record<string, unknown> {
  return { ...issue, short_id: shortId(issue.id, all) };
}
