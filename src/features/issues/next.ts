import type { LeaseStatus } from "../../coordinator/contract";
import type { Acquired } from "../../coordinator/session";
import { CotenantError } from "../../errors/cotenant-error";
import type { Ulid } from "../../kernel/ids";
import type { IssueRow } from "./board";
import { refuseUnclaimable } from "./claimable";
import type { Answer } from "./query";
import type { IssueReader } from "./reader";

/** What is needed to take the next issue, whoever asks. */
export interface Taking {
  readonly reader: IssueReader;
  /** What is available now, the most urgent first. */
  look(): Promise<Answer>;
  claims(): Promise<ReadonlyMap<Ulid, LeaseStatus>>;
  acquire(id: Ulid): Promise<Acquired>;
  release(grant: Acquired): Promise<void>;
}

export interface Taken {
  readonly issue: IssueRow;
  readonly grant: Acquired;
}

/** Each look finds what others have taken meanwhile: after so many, they are faster than we are. */
const LOOKS = 5;

/**
 * Claims the first available issue that nobody else gets before us; null when there is none. Whoever comes second goes
 * on with the next one.
 */
export async function takeNext(taking: Taking): Promise<Taken | null> {
  for (let look = 0; look < LOOKS; look++) {
    const { issues } = await taking.look();
    if (issues.length === 0) return null;
    let claims: ReadonlyMap<Ulid, LeaseStatus> = new Map();
    for (const issue of issues) {
      if (claims.has(issue.id)) continue;
      const grant = await attempt(taking, issue.id);
      if (grant === null) {
        claims = await taking.claims();
        continue;
      }
      if (grant.replayed || (await isStillFree(taking.reader, issue.id))) return { issue, grant };
      await taking.release(grant);
    }
  }
  return null;
}

/** Null when it is somebody else's, or ours already: another process of this session has it then. */
async function attempt(taking: Taking, id: Ulid): Promise<Acquired | null> {
  try {
    const grant = await taking.acquire(id);
    return grant.isNew || grant.replayed ? grant : null;
  } catch (error) {
    if (error instanceof CotenantError && (error.code === "E_LOCK_CONFLICT" || error.code === "E_QUEUED"))
      return null;
    throw error;
  }
}

const UNCLAIMABLE: readonly string[] = ["E_TERMINAL_STATE", "E_POLICY", "E_NOT_FOUND", "E_SCHEMA_NEWER"];

/** Between our look and our claim somebody may have had it, and finished it, or added something to wait for. */
async function isStillFree(reader: IssueReader, id: Ulid): Promise<boolean> {
  try {
    await refuseUnclaimable(reader, await reader.get(id), { onlyIfReady: true });
    return true;
  } catch (error) {
    if (error instanceof CotenantError && UNCLAIMABLE.includes(error.code)) return false;
    throw error;
  }
}
