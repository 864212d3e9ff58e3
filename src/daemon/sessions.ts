import type { Coordinator } from "../coordinator/contract";
import { Session } from "../coordinator/session";
import type { Workspace } from "../coordinator/workspace";
import type { Actor } from "../kernel/commands";
import type { Lease, Party } from "../kernel/lease";
import { SessionSecrets } from "../store/secrets";

const MOST = 10_000;

export type SessionPlace = Pick<Workspace, "store" | "engine" | "settleIn"> & {
  readonly surroundings: Pick<Workspace["surroundings"], "platform">;
};

/** Sessions of others, in whose name the daemon does what keeps their leases: it proves them by the secrets that they have stored. */
export class Sessions {
  /** By the engine that they ask: one of other settings, or of another remote, is not theirs any more. */
  readonly #known = new WeakMap<Coordinator, Map<string, Session>>();

  async of(workspace: SessionPlace, lease: Lease): Promise<Session> {
    const name = `${partyName(lease)}\n${lease.holder.pid} ${lease.holder.startTime}`;
    const engine = await workspace.engine();
    const sessions = this.#known.get(engine) ?? new Map<string, Session>();
    this.#known.set(engine, sessions);
    const known = sessions.get(name);
    if (known !== undefined) return known;
    const { platform } = workspace.surroundings;
    const { agentId, sessionId, worktreeId, branch, holder } = lease;
    const actor: Actor = { agentId, sessionId, worktreeId, branch, holder };
    const secrets = new SessionSecrets(platform, workspace.store.layout, actor, () => workspace.settleIn());
    const session = new Session(platform, engine, actor, secrets);
    if (sessions.size >= MOST) sessions.clear();
    sessions.set(name, session);
    return session;
  }
}

export function partyName({ agentId, sessionId, worktreeId }: Party): string {
  return `${agentId}\n${sessionId}\n${worktreeId}`;
}
