import { type Surroundings, Workspace } from "../coordinator/workspace";
import { CotenantError, orThrow } from "../errors/cotenant-error";
import { issuesIn } from "../features/issues/desk";
import { claimable, claimOf, meantForClaim } from "../features/ledger/claim-issue";
import { ledgerInFront } from "../features/ledger/in-front";
import { SharedRemotes } from "../features/ledger/shared-remotes";
import { type AgentId, parseAgentId } from "../kernel/ids";
import type { Holder } from "../kernel/lease";
import { syncAs } from "./ledger-sync";
import { OpenStores } from "./open-stores";
import { CLAIM, LEDGER_SYNC, paramsOf } from "./requests";

/** Repositories whose queues are kept; the one that was used least lately makes room for another. */
const MOST_OPEN = 16;

/** One after the other, for each repository. */
interface Queue {
  last: Promise<unknown>;
  waiting: number;
}

/** For whoever does not say who they are, and changes nothing of anybody's. */
export const ANYBODY = orThrow(parseAgentId("agent:daemon"));

interface Caller {
  readonly agentId: AgentId;
  readonly sessionId?: string | undefined;
}

/**
 * What clients ask about any repository of this machine, by its path, in the words of seed 004. Settings are read anew for each
 * of them, so that nothing that was opened long ago can be stale.
 */
export class Repositories {
  readonly #surroundings: () => Surroundings;
  readonly #note: (message: string, about: Record<string, unknown>) => void;
  readonly #queues = new Map<string, Queue>();
  readonly #stores: OpenStores;
  readonly #remotes = new SharedRemotes();

  constructor(
    surroundings: () => Surroundings,
    note: (message: string, about: Record<string, unknown>) => void,
  ) {
    this.#surroundings = surroundings;
    this.#note = note;
    this.#stores = new OpenStores(surroundings().platform);
  }

  get size(): number {
    return this.#queues.size;
  }

  /** Whoever asks again gets what they have: after a lost answer that is safe. */
  async claim(params: unknown): Promise<object> {
    const { repoPath, atomId, agentId, sessionId, pid } = paramsOf(CLAIM, params);
    try {
      const claimed = await this.#inTurn(repoPath, { agentId, sessionId }, (workspace) =>
        claimIn(workspace, atomId, pid ?? null),
      );
      return { success: true, error: null, claimed_by: agentId, ...claimed };
    } catch (error) {
      if (!(error instanceof CotenantError)) throw error;
      const { data } = error;
      const holders = (data["holders"] ?? []) as { agent_id?: string }[];
      return {
        success: false,
        error: errorJson(error),
        claimed_by: data["claimed_by"] ?? holders[0]?.agent_id ?? null,
        retries: data["retries"] ?? 0,
      };
    }
  }

  async ledgerSync(params: unknown): Promise<object> {
    const { repoPath, action, agentId = ANYBODY } = paramsOf(LEDGER_SYNC, params);
    try {
      const details = await this.#inTurn(repoPath, { agentId }, (workspace) => syncAs(workspace, action));
      return { success: true, error: null, action, details };
    } catch (error) {
      if (!(error instanceof CotenantError)) throw error;
      return { success: false, error: errorJson(error), action, details: error.data };
    }
  }

  async #inTurn<T>(repoPath: string, caller: Caller, run: (workspace: Workspace) => Promise<T>): Promise<T> {
    const queue = this.#queueOf(repoPath);
    queue.waiting++;
    const turn = queue.last.then(async () => run(await this.#open(repoPath, caller)));
    queue.last = turn.catch(() => {});
    try {
      return await turn;
    } finally {
      queue.waiting--;
      if ([...this.#queues.values()].every(({ waiting }) => waiting === 0)) this.#stores.tidy(MOST_OPEN);
    }
  }

  #queueOf(repoPath: string): Queue {
    const known = this.#queues.get(repoPath);
    if (known === undefined) this.#note("first use", { repository: repoPath });
    const queue = known ?? { last: Promise.resolve(), waiting: 0 };
    this.#queues.delete(repoPath);
    this.#queues.set(repoPath, queue);
    for (const [path, { waiting }] of this.#queues) {
      if (this.#queues.size <= MOST_OPEN) break;
      if (waiting === 0 && path !== repoPath) this.#queues.delete(path);
    }
    return queue;
  }

  #open(repoPath: string, { agentId, sessionId }: Caller): Promise<Workspace> {
    return Workspace.open(
      { ...this.#surroundings(), cwd: repoPath },
      {
        agentId,
        session: sessionId,
        doing: "daemon",
        engine: (workspace) => ledgerInFront(workspace, this.#remotes),
        openStore: (options) => this.#stores.of(options),
      },
    );
  }
}

async function claimIn(workspace: Workspace, atomId: string, pid: number | null): Promise<object> {
  const id = await meantForClaim(workspace, atomId);
  const found = await claimable(await issuesIn(workspace), id, {});
  const session = await workspace.session("write");
  const { keys, aboveToken, confirm } = await claimOf(workspace, found, {}, false);
  const grant = await session.acquire(keys, {
    ttlSecs: await workspace.usualTtlSecs("claim"),
    holder: await holderFor(workspace, pid),
    aboveToken,
  });
  await confirm(session, grant);
  const { leaseId, fencingToken, expiresAt } = grant.leases[0]!;
  return {
    retries: grant.ledger?.retries ?? 0,
    is_offline: grant.ledger?.isOffline ?? false,
    issue_id: id,
    lease_id: leaseId,
    fencing_token: fencingToken,
    expires_at: expiresAt === null ? null : new Date(expiresAt.wallMs).toISOString(),
    worktree_id: session.actor.worktreeId,
    session_id: session.actor.sessionId,
  };
}

/** The process that the claim is for; nobody's where the caller does not say: the daemon itself would keep it alive for good. */
async function holderFor({ surroundings }: Workspace, pid: number | null): Promise<Holder> {
  const { processes } = surroundings.platform;
  if (pid === null) return { ...processes.self(), startTime: "0" };
  const holder = await processes.identify(pid);
  if (holder !== null) return holder;
  throw new CotenantError("E_USAGE", `there is no process ${pid} on this machine`, {
    hint: "name a process that is running, or leave pid out",
    data: { field: "pid" },
  });
}

function errorJson(error: CotenantError): object {
  const { message, hint } = error;
  if (error.code !== "E_NOT_A_REPO") return { code: error.code, message, hint };
  return { code: "repo_not_found", message, hint: "make one with 'git init', then 'cotenant init' in it" };
}
