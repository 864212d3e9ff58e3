import { sharesClaims } from "../../config/shared-claims";
import { readTrust } from "../../config/trust";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { Ulid } from "../../kernel/ids";
import { printable } from "../../kernel/ids";
import type { Commands } from "../../platform/commands";
import { readRegistry } from "../gates/registry";
import { pendingGates } from "../gates/results";
import { automatedGates, hasPassed, type RanGate, refuseUntrusted, runAndRecord } from "../gates/run";
import { fieldChanges } from "../issues/changes";
import { finishCheck } from "../issues/claimable";
import { encodeComment, newComment, readComments } from "../issues/comments";
import { issuesIn, writerIn } from "../issues/desk";
import type { Issue, IssueState } from "../issues/model";
import { isTerminal } from "../issues/model";
import { isFound } from "../issues/resolve";
import { stateAfter } from "../issues/states";
import { writeBack } from "../issues/write-back";
import { hasPath } from "./branches";
import type { PromptTask } from "./prompt";
import type { Station } from "./slots";

/** Whether an issue is there still, and over already, whoever says so. */
export async function standingOf(
  workspace: Workspace,
  id: Ulid,
): Promise<{ readonly isDeleted: boolean; readonly isOver: boolean; readonly state: IssueState | null }> {
  const found = await (await issuesIn(workspace)).find(id);
  if (!isFound(found)) return { isDeleted: found === null, isOver: false, state: null };
  const { state, isDeleted } = found;
  return { isDeleted, isOver: isTerminal({ state }), state };
}

/**
 * What is wrong with an issue's own file in a worker's worktree, which is to be merged as it is: without it nobody could read the issue any
 * more. Null where nothing is.
 */
export async function faultOf(station: Station, id: Ulid, base: string): Promise<string | null> {
  const reader = await issuesIn(station.workspace);
  const raw = await reader.here.read(id);
  if (raw === null) {
    const wasThere = await hasPath(station, base, `.cotenant/issues/${id}/issue.json`);
    return wasThere ? "the agent took away the file of its issue" : null;
  }
  const found = await reader.find(id);
  const isBroken = found?.broken.some(({ root }) => root === reader.here.root) ?? false;
  return isBroken ? "the agent left the file of its issue in a state in which nobody can read it" : null;
}

/** The issue as it is now that it is claimed, for the agent. */
export async function taskOf(
  workspace: Workspace,
  id: Ulid,
): Promise<Pick<PromptTask, "issue" | "comments" | "gates">> {
  const reader = await issuesIn(workspace);
  const found = await reader.get(id);
  const { shortId } = await import("../issues/short-id");
  const { title, description, files, context, gates } = found.issue;
  const registry = await readRegistry(reader.sources.platform, reader.here.root);
  return {
    issue: {
      id,
      title,
      description,
      files,
      context,
      labels: found.labels,
      shortId: shortId(id, await reader.ids()),
    },
    comments: await readComments(reader, found),
    gates: [...new Set(gates)].map((key) => {
      const gate = registry.gates.get(key);
      return { key, kind: gate?.kind ?? null, command: gate?.command ?? null };
    }),
  };
}

export interface GatesRun {
  /** The first that did not pass; null where all did. */
  readonly failed: RanGate | null;
  /** What is to be passed still, by somebody's word. */
  readonly pending: readonly string[];
}

/** The automated gates that are not passed yet, one after the other, until one fails. */
export async function runGates(
  { workspace }: Station,
  commands: Commands,
  id: Ulid,
  { onStart, signal }: { readonly onStart: (gate: string) => void; readonly signal: AbortSignal },
): Promise<GatesRun> {
  const reader = await issuesIn(workspace);
  const writer = await writerIn(workspace, reader);
  const found = await reader.get(id);
  const { platform } = workspace.surroundings;
  const registry = await readRegistry(platform, reader.here.root);
  const trust = await readTrust(platform, workspace.repository.controlDir);
  const { due } = await automatedGates(reader, found, registry, { all: false });
  for (const gate of due) refuseUntrusted(platform.digest, trust, gate);
  for (const gate of due) {
    const desk = { workspace, reader, writer, commands };
    const ran = await runAndRecord(desk, found, gate, {}, { onStart: () => onStart(gate.key), signal });
    if (!hasPassed(ran.run)) return { failed: ran, pending: [gate.key] };
  }
  return { failed: null, pending: await pendingGates(reader, await reader.get(id)) };
}

/**
 * Done, or gated where a gate is still to be passed; answers which. Proved by the claim. What counts is the copy in this worktree,
 * which is to be committed: of what a killed run has written, only the log may be left.
 */
export async function finishIssue(
  { workspace, root }: Station,
  id: Ulid,
  resolution: string,
): Promise<IssueState> {
  const reader = await issuesIn(workspace);
  const writer = await writerIn(workspace, reader);
  const check = await finishCheck(reader, id);
  const { found } = await writer.update(
    id,
    async (current) => {
      check(current);
      const { issue, ahead, copy } = current;
      const isHere = ahead === null && copy.root === root;
      const state = isTerminal(current)
        ? current.state
        : stateAfter(issue, "done", await pendingGates(reader, current));
      const fields: Partial<Issue> = isTerminal(issue) ? { state } : { state, resolution };
      const changes = fieldChanges(issue, fields);
      if (isHere && Object.keys(changes).length === 0) return null;
      return { fields, events: [{ type: "issue.updated", payload: { issue_id: id, changes } }] };
    },
    { enforcement: "strict" },
  );
  return found.state;
}

/** Ready again, as it was before it was claimed. Why that could not be written, if so. */
export async function putBackIssue({ workspace, slot }: Station, id: Ulid): Promise<string | null> {
  const reader = await issuesIn(workspace);
  const writer = await writerIn(workspace, reader);
  const { failure } = await writeBack(
    writer,
    reader,
    { id, holder: slot.agentId },
    { enforcement: "strict" },
  );
  return failure;
}

const LONGEST_COMMENT = 8_000;

/** Into the files of the worktree that the workspace is of. */
export async function commentOn(workspace: Workspace, id: Ulid, by: string, text: string): Promise<void> {
  const reader = await issuesIn(workspace);
  const writer = await writerIn(workspace, reader);
  const comment = newComment(reader.sources.platform, by, text.slice(0, LONGEST_COMMENT));
  const payload = { issue_id: id, comment_id: comment.id };
  await writer.comment(id, encodeComment(comment), { type: "issue.commented", payload }, null);
}

/**
 * What was written here goes to the ledger, and what it has of this issue is copied into the worktree: of other issues the worktree has no
 * business to commit anything. Answers why that could not be done.
 */
export async function syncThere({ workspace, session }: Station, id: Ulid): Promise<string | null> {
  if (!sharesClaims(workspace.config)) return null;
  try {
    const { openLedger } = await import("../ledger/open");
    const { syncLedger } = await import("../ledger/exchange");
    await syncLedger(await openLedger(workspace), workspace, session, () => {}, new Set([id]));
    return null;
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    return printable(error.message, 300);
  }
}
