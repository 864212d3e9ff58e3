import type { Context, Parsed } from "../../../cli/grammar/command";
import { surroundingsIn, Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { listWorktrees, type WorktreeEntry } from "../../../identity/worktree-list";
import { printable } from "../../../kernel/ids";
import { ledgerInFront } from "../../ledger/in-front";
import { meantWorktree } from "../meant";

/** The worktree that the command is about: the one that its word names, or the one around the caller. */
export async function workspaceOf(context: Context, parsed: Parsed, doing: string): Promise<Workspace> {
  const here = await context.workspace();
  const [word] = parsed.words;
  if (word === undefined) return here;
  return workspaceAt(context, parsed, await meantWorktree(here, word), doing);
}

export async function workspaceAt(
  context: Context,
  parsed: Parsed,
  { root, exists }: Pick<WorktreeEntry, "root" | "exists">,
  doing: string,
  /** What it is opened from; else the one around the caller. */
  from?: Workspace,
): Promise<Workspace> {
  const here = from ?? (await context.workspace());
  if (root === here.repository.worktreeRoot) return here;
  if (!exists)
    throw new CotenantError("E_NOT_FOUND", `the worktree at ${root} is gone`, {
      hint: `make Git forget it: cotenant worktree remove ${printable(root, 500)}`,
      data: { root },
    });
  return Workspace.open(surroundingsIn(context.surroundings(), root), {
    agentId: parsed.text("agent-id"),
    session: parsed.text("session"),
    allowNetworkFs: parsed.has("allow-network-fs"),
    doing,
    // One repository, one ledger: claims from there are shared as claims from here are.
    engine: async () => {
      const engine = await here.engine();
      return engine === here.coordinator ? null : engine;
    },
  });
}

/**
 * For whoever takes a worktree away, also the one around the caller: a workspace of the repository that stays. The ledger's
 * commands run where it is.
 */
export async function stayingWorkspace(
  context: Context,
  parsed: Parsed,
  going: Pick<WorktreeEntry, "root">,
  doing: string,
): Promise<Workspace> {
  const here = await context.workspace();
  const { repository, surroundings } = here;
  if (repository.worktreeRoot !== going.root) return here;
  const all = await listWorktrees(surroundings.platform, surroundings.git, repository);
  const other = all.find(({ root, exists }) => exists && root !== going.root);
  // In a bare repository it may be the only one.
  if (other === undefined) return here;
  return Workspace.open(surroundingsIn(context.surroundings(), other.root), {
    agentId: parsed.text("agent-id"),
    session: parsed.text("session"),
    allowNetworkFs: parsed.has("allow-network-fs"),
    doing,
    engine: ledgerInFront,
  });
}
