import { harnessAgentId, harnessSessionId, subagentId } from "../identity/harness-agent";
import { type AgentId, agentType, parseAgentId, parseSessionId, type SessionId } from "../kernel/ids";
import type { Holder } from "../kernel/lease";
import { isRefusal } from "../kernel/refusal";
import type { Report } from "./report";
import type { World } from "./world";

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
  const given = env["COTENANT_AGENT_ID"];
  const parsed = given === undefined || given === "" ? null : parseAgentId(given);
  if (parsed === null || isRefusal(parsed)) return null;
  const type = agentType(parsed);
  return type === "human" || type === "admin" ? null : parsed;
}

function givenSession({ env }: World): SessionId | null {
  const given = env["COTENANT_SESSION_ID"];
  const parsed = given === undefined || given === "" ? null : parseSessionId(given);
  return parsed === null || isRefusal(parsed) ? null : parsed;
}

const MOST_WRAPPERS = 8;
const SHELL = /(?:^|\/)(?:ba|z|da|a|k|fi)?sh$|(?:^|[\\/])(?:cmd|powershell|pwsh)(?:\.exe)?$/i;
const RUNNER = /(?:^|\/)(?:env|timeout|nice|nohup|setsid|stdbuf|npx|npm|bunx|pnpm)$/;
const NODE_RUNNER = /(?:^|\/)(?:npx|npm)(?:-cli)?(?:\.js)?$/;

/**
 * The harness's own process: whoever started this one, past the shell and the helpers that stand between. Its death is
 * what frees the files.
 */
async function harnessProcess({ platform, parentPid, harnessPid }: World): Promise<Holder> {
  const { processes } = platform;
  let pid = harnessPid ?? parentPid;
  for (let i = 0; harnessPid === null && i < MOST_WRAPPERS; i++) {
    const ancestry = await processes.ancestry(pid);
    if (ancestry === null || ancestry.parentPid <= 1 || !isWrapper(ancestry.words)) break;
    pid = ancestry.parentPid;
  }
  // Gone already: then nothing of it should outlive it.
  return (await processes.identify(pid)) ?? { ...processes.self(), pid, startTime: "" };
}

/** A shell that runs one command line, not one that reads a script or a terminal. */
export function isWrapper(words: readonly string[]): boolean {
  const [first = "", second = ""] = words;
  if (SHELL.test(first)) return words.slice(1, 4).some((word) => /^(?:-[a-z]*c|\/c|-command)$/i.test(word));
  return RUNNER.test(first) || (/(?:^|\/)node$/.test(first) && NODE_RUNNER.test(second));
}
