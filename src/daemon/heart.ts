import { readAgentFile } from "../config/agent-file";
import type { LeaseStatus } from "../coordinator/contract";
import type { Session } from "../coordinator/session";
import type { Workspace } from "../coordinator/workspace";
import type { Lease } from "../kernel/lease";
import type { Journal } from "./journal";
import { partyName, type Sessions } from "./sessions";

/** After something went wrong, and where nothing is to be done, for whoever changes the settings meanwhile. */
const LOOK_AGAIN_MS = 60_000;

/**
 * Shows that sessions are alive whose processes are: for each of them a file that anybody can read, and for claims that are taken for
 * left when nobody has heard of their holder, a line in the log, and at the remote, long before that.
 */
export class Heart {
  readonly #workspace: () => Promise<Workspace>;
  readonly #sessions: Sessions;
  readonly #journal: Journal;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;
  #isOn = false;
  #beats = 0;
  /** For whom the last round was. */
  #beaten = 0;
  #failure: string | null = null;

  constructor(workspace: () => Promise<Workspace>, sessions: Sessions, journal: Journal) {
    this.#workspace = workspace;
    this.#sessions = sessions;
    this.#journal = journal;
  }

  start(): void {
    void this.#beat();
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  status(): object {
    return {
      is_on: this.#isOn,
      sessions: this.#isOn ? this.#beaten : 0,
      beats: this.#beats,
      last_failure: this.#failure,
    };
  }

  async #beat(): Promise<void> {
    let nextMs = LOOK_AGAIN_MS;
    try {
      const workspace = await this.#workspace();
      const intervalSecs = await intervalFor(workspace);
      this.#isOn = intervalSecs !== null;
      if (intervalSecs !== null) {
        nextMs = intervalSecs * 1000;
        await this.#beatAll(workspace, intervalSecs);
      }
    } catch (error) {
      this.#failed(error);
    }
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#beat(), nextMs);
  }

  async #beatAll(workspace: Workspace, intervalSecs: number): Promise<void> {
    const { processes } = workspace.surroundings.platform;
    const live = new Map<string, LeaseStatus[]>();
    for (const status of await workspace.coordinator.list()) {
      const { lease, standing } = status;
      if (standing !== "valid" || (await processes.liveness(lease.holder)) !== "alive") continue;
      const name = partyName(lease);
      live.set(name, [...(live.get(name) ?? []), status]);
    }
    this.#beaten = live.size;
    for (const leases of live.values()) {
      const [first] = leases;
      try {
        const session = await this.#sessions.of(workspace, first!.lease);
        const { layout, options } = workspace.store;
        await session.writeHeartbeat(layout, options.modes, intervalSecs);
        await beatClaims(workspace, session, leases);
        this.#beats++;
      } catch (error) {
        this.#failed(error, first!.lease);
      }
    }
  }

  #failed(error: unknown, lease?: Lease): void {
    const { message, code } = error as Error & { code?: string };
    this.#failure = `${new Date().toISOString()} ${message}`;
    this.#journal.note("could not beat", { agent_id: lease?.agentId ?? null, code, error: message });
  }
}

/** What the user has asked for in agent.toml; null where nobody did. */
async function intervalFor({ surroundings, config }: Workspace): Promise<number | null> {
  const file = await readAgentFile(surroundings);
  if (file?.autoHeartbeat !== true) return null;
  return file.heartbeatSecs ?? config.values["coordination.heartbeat_interval_secs"];
}

/** Claims without an end are taken for left after a while of silence, here and at the remote: half of that while is enough. */
async function beatClaims(
  { config, store }: Workspace,
  session: Session,
  leases: readonly LeaseStatus[],
): Promise<void> {
  const staleMs = config.values["coordination.stale_threshold_secs"] * 1000;
  const timeoutHours = config.values["sync.claim_timeout_hours"];
  const patienceMs = Math.min(staleMs, timeoutHours === null ? staleMs : timeoutHours * 3_600_000) / 2;
  const nowMs = store.now().wallMs;
  const due = leases.filter(
    ({ lease }) =>
      lease.expiresAt === null &&
      lease.bind === "ttl" &&
      nowMs - Math.max(lease.lastBeat.wallMs, lease.renewedAt.wallMs) > patienceMs,
  );
  if (due.length > 0) await session.heartbeat(due.map(({ lease: { key, leaseId } }) => ({ key, leaseId })));
}
