import type { LeaseStatus } from "../../../coordinator/contract";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { currentBranch } from "../../../identity/branch";
import { settleWorktreeIdentity, type WorktreeReading } from "../../../identity/worktree";
import { printable, type WorktreeId } from "../../../kernel/ids";
import { ACCESS_MODES, type Access, accessOf, setAccess } from "../access";
import { type Surveyed, surveyWorktrees } from "../survey";
import { create } from "./create";
import { remove } from "./remove";
import { lock, renew, unlock } from "./writer-lock";

export type { CreatedWorktree, CreateRequest } from "./create";
export { hook, type MadeForHarness } from "./hook";
export type { Removed } from "./remove";
export type { WriterLock, WriterLocked } from "./writer-lock";

/** A worktree is named by its id, branch or directory. */

export interface WorktreeInfo extends WorktreeReading {
  readonly branch: string | null;
  readonly access: Access;
  /** What was leased from it. */
  readonly leases: readonly LeaseStatus[];
}

export interface WorktreeAccess {
  readonly worktreeId: WorktreeId;
  readonly access: Access;
  readonly changed: boolean;
}

export const worktree = {
  /** This worktree's identity. Writes nothing. */
  async info(workspace: Workspace): Promise<WorktreeInfo> {
    const { coordinator, repository, surroundings } = workspace;
    const reading = await workspace.worktree("read");
    const { worktreeId } = reading.identity;
    const branch = await currentBranch(surroundings.platform, surroundings.git, repository.gitDir);
    const leases = (await coordinator.list()).filter(({ lease }) => lease.worktreeId === worktreeId);
    return { ...reading, branch, leases, access: await accessOf(coordinator, worktreeId) };
  },

  /** All worktrees. `quick`: without asking Git for changes and distances. Writes nothing. */
  list(
    workspace: Workspace,
    { quick = false }: { readonly quick?: boolean } = {},
  ): Promise<readonly Surveyed[]> {
    return surveyWorktrees(workspace, { withGit: !quick });
  },

  /** Gives this worktree its identity now; where another one has the same, a new one. */
  async init(workspace: Workspace): Promise<WorktreeReading> {
    const { platform, git } = workspace.surroundings;
    const reading = await settleWorktreeIdentity(platform, git, workspace.repository);
    if (reading.warning !== null) workspace.warnings.push(reading.warning);
    return reading;
  },

  create,
  remove,
  lock,
  renew,
  unlock,
  /** The same: nobody can steal a live one. */
  steal: lock,

  /** How this worktree is written; with a mode, from now on. */
  async access(
    workspace: Workspace,
    { mode }: { readonly mode?: string | undefined } = {},
  ): Promise<WorktreeAccess> {
    const { worktreeId } = (await workspace.worktree("read")).identity;
    if (mode === undefined)
      return { worktreeId, access: await accessOf(workspace.coordinator, worktreeId), changed: false };
    const access = ACCESS_MODES.find((known) => known === mode);
    if (access === undefined)
      throw new CotenantError("E_USAGE", `a worktree is exclusive or shared, not "${printable(mode)}"`, {
        hint: "cotenant worktree access exclusive",
      });
    const session = await workspace.session("write");
    const { clock } = workspace.surroundings.platform;
    const before = await setAccess(session, access, new Date(clock.wallMs()).toISOString());
    return { worktreeId: session.actor.worktreeId, access, changed: before !== access };
  },
};
