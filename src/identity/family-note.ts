import { type AgentId, parseAgentId, parseSessionId, type SessionId } from "../kernel/ids";
import { isRefusal } from "../kernel/refusal";
import type { Digest, Platform, ProcessIdentity } from "../platform/platform";
import type { Harness } from "./harness";

/** Whom the guard knows a shell's commands as: mostly a subagent, in its parent's session. */
export interface FamilyMember {
  readonly agentId: AgentId;
  readonly sessionId: SessionId;
}

/**
 * Some harnesses tell a subagent's shell an id of the subagent's and nothing of its parent. Their hook events know better:
 * the guard puts down what they say, so that a commit or a command there is of the same session as the edits. By that
 * id; or, where no event names it, by the harness's process.
 */
export function familyNote(controlDir: string, digest: Digest, about: string | ProcessIdentity): string {
  const key = typeof about === "string" ? about : processKey(about);
  return `${controlDir}/guard/family-${digest.sha256(key).slice(0, 32)}`;
}

/** One line for each. */
export function familyLine({ agentId, sessionId }: FamilyMember): string {
  return `${agentId} ${sessionId}\n`;
}

/** Copilot's subagents have a session in their shell that none of its events names. */
export function isKnownByProcess({ name }: Pick<Harness, "name">): boolean {
  return name === "copilot";
}

/** Null where nobody has put anything down, and where one process has run several sessions. */
export async function readFamilyNote(
  platform: Pick<Platform, "files" | "digest" | "processes">,
  controlDir: string,
  harness: Harness & { readonly sessionId: string },
): Promise<FamilyMember | null> {
  const { files, digest, processes } = platform;
  const read = async (about: string | ProcessIdentity) =>
    memberIn(await files.readFile(familyNote(controlDir, digest, about)));
  if (!isKnownByProcess(harness)) return read(harness.sessionId);
  let pid = processes.self().pid;
  for (let i = 0; i < MOST_ANCESTORS && pid > 1; i++) {
    pid = (await processes.ancestry(pid))?.parentPid ?? 0;
    const process = pid > 1 ? await processes.identify(pid) : null;
    const member = process === null ? null : await read(process);
    if (member !== null) return member;
  }
  return null;
}

const MOST_ANCESTORS = 12;

function memberIn(bytes: Uint8Array | null): FamilyMember | null {
  const lines = bytes === null ? [] : new TextDecoder().decode(bytes).trimEnd().split("\n");
  if (lines.length !== 1) return null;
  const [agent = "", session = ""] = lines[0]!.split(" ");
  const [agentId, sessionId] = [parseAgentId(agent), parseSessionId(session)];
  return isRefusal(agentId) || isRefusal(sessionId) ? null : { agentId, sessionId };
}

function processKey({ machineId, bootId, pidNamespace, pid, startTime }: ProcessIdentity): string {
  return [machineId, bootId, pidNamespace, pid, startTime].join("\n");
}
