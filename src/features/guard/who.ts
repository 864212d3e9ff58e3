import { harnessAgentId, harnessSessionId, subagentId } from "../../identity/harness-agent";
import { type AgentId, agentType, parseAgentId, parseSessionId, type SessionId } from "../../kernel/ids";
import type { Holder } from "../../kernel/lease";
import { isRefusal } from "../../kernel/refusal";
import type { Ancestry, Processes } from "../../platform/platform";
import type { Report } from "./report";
import type { World } from "./world";
import { isReaper, pastWrappers } from "./wrappers";

/** Who an event is about. */
export interface Who {
  readonly agentId: AgentId;
  readonly sessionId: SessionId;
  /** The session's main agent: the same, but for subagents. */
  readonly mainAgentId: AgentId;
  readonly holder: Holder;
}

export async function whoIs(
  world: World,
  report: Pick<Report, "harness" | "sessionId" | "subagent">,
): Promise<Who> {
  if (world.found?.who != null) return world.found.who;
  const who = await whoSays(world, report);
  if (world.found !== undefined) world.found.who = who;
  return who;
}

async function whoSays(
  world: World,
  report: Pick<Report, "harness" | "sessionId" | "subagent">,
): Promise<Who> {
  const { digest } = world.platform;
  const holder = await harnessProcess(world);
  // A harness that keeps its session to itself is told apart by its process.
  const raw = report.sessionId ?? `pid-${holder.pid}-${holder.startTime}`;
  const mainAgentId = givenAgent(world) ?? harnessAgentId(digest, report.harness, raw);
  const agentId = report.subagent === null ? mainAgentId : subagentId(digest, mainAgentId, report.subagent);
  return { agentId, mainAgentId, sessionId: givenSession(world) ?? harnessSessionId(digest, raw), holder };
}

/** Ids of people are refused to whatever runs inside a harness. */
function givenAgent({ env }: World): AgentId | null {
  const parsed = parseAgentId(env["COTENANT_AGENT_ID"] ?? "");
  return isRefusal(parsed) || ["human", "admin"].includes(agentType(parsed)) ? null : parsed;
}

function givenSession({ env }: World): SessionId | null {
  const parsed = parseSessionId(env["COTENANT_SESSION_ID"] ?? "");
  return isRefusal(parsed) ? null : parsed;
}

/**
 * The harness's own process: whoever started this one, past the shell and the helpers that stand between. Its death is
 * what frees the files.
 */
async function harnessProcess({ platform, parentPid, harnessPid, harness }: World): Promise<Holder> {
  const { processes } = platform;
  if (harness !== undefined) return harness;
  if (harnessPid !== null) return namedAsHolder(processes, harnessPid);
  const { pid, ancestry } = await pastWrappers(processes, parentPid);
  return liveHolder(processes, pid, ancestry);
}

/** Whoever started this process, for one that is no harness's. */
export async function parentAsHolder(processes: Processes, pid: number): Promise<Holder> {
  return liveHolder(processes, pid, await processes.ancestry(pid));
}

/** Of a harness that died before we looked, so that nothing stays held. */
async function liveHolder(processes: Processes, pid: number, ancestry: Ancestry | null): Promise<Holder> {
  if (isReaper(pid, ancestry, await ownAncestry(processes, pid)))
    return gone(processes, processes.self().pid);
  return namedAsHolder(processes, pid);
}

/** One that the caller has named is taken as it is, also the reaper. */
export async function namedAsHolder(processes: Processes, pid: number): Promise<Holder> {
  return (await processes.identify(pid)) ?? gone(processes, pid);
}

/** Needed only to tell a reaper from a harness. */
async function ownAncestry(processes: Processes, parentPid: number): Promise<Ancestry | null> {
  return parentPid === 1 ? processes.ancestry(processes.self().pid) : null;
}

/** Stands for a process that has ended: no live one has that start time. */
function gone(processes: Processes, pid: number): Holder {
  return { ...processes.self(), pid, startTime: "0" };
}
