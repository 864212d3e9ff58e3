import type { SimProcess } from "../../../testing/simulator";
import type { Moment } from "./chronicle";
import type { Party, Viewer } from "./oracle";
import type { Deed, Lane } from "./story";

/** A deed being done: by whom, from when until when. One that was interrupted never ends. */
export interface Call {
  readonly deed: Deed;
  readonly lane: Lane;
  readonly party: Party;
  readonly process: SimProcess;
  readonly viewer: Viewer;
  readonly began: Moment;
  /** Whether it is the only one in its process: then all that the process does is done for it. */
  readonly isAlone: boolean;
  ended: Moment | null;
}

export function partyOf(lane: Lane): Party {
  return { agentId: lane.agent, sessionId: lane.session, worktreeId: lane.worktree };
}

export function viewerOf(process: SimProcess): Viewer {
  const { bootId, pidNamespace, timeNamespace } = process.identity;
  return {
    clockId: `${bootId}+${timeNamespace}`,
    offsetMs: process.namespaces.monotonicOffsetMs,
    bootId,
    pidNamespace,
    timeNamespace,
  };
}

export function wantedExtents(deed: Deed, party: Party) {
  if (deed.do !== "acquire") return [];
  return deed.keys.map(({ key, reach }) => ({
    key,
    reach: /^(file|dir):/.test(key) ? reach : "repository",
    worktreeId: party.worktreeId,
  }));
}
