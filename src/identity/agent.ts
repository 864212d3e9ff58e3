import { readAgentFile } from "../config/agent-file";
import { CotenantError, orThrow, policyError } from "../errors/cotenant-error";
import {
  type AgentId,
  agentType,
  DEFAULT_SESSION,
  parseAgentId,
  parseSessionId,
  printable,
  type SessionId,
} from "../kernel/ids";
import { isRefusal } from "../kernel/refusal";
import type { Platform } from "../platform/platform";
import { type FamilyMember, readFamilyNote } from "./family-note";
import { detectHarness, type Harness } from "./harness";
import { harnessAgentId, harnessSessionId } from "./harness-agent";
import type { Environment } from "./repository";

type AgentSource = "flag" | "environment" | "harness" | "agent.toml" | "terminal";
type SessionSource = "flag" | "environment" | "harness" | "default";

export interface AgentIdentity {
  readonly agentId: AgentId;
  readonly agentFrom: AgentSource;
  readonly sessionId: SessionId;
  readonly sessionFrom: SessionSource;
  readonly harness: Harness | null;
}

export interface AgentQuestion {
  readonly platform: Platform;
  readonly env: Environment;
  /** Null when there is no home directory; then there is no `agent.toml` either. */
  readonly home: string | null;
  readonly isTerminal: boolean;
  /** Where the guard keeps whose subagents are; null outside of any repository. */
  readonly controlDir: string | null;
  readonly flags?: { readonly agentId?: string | undefined; readonly session?: string | undefined };
}

export const AGENT_VARIABLE = "COTENANT_AGENT_ID";
export const SESSION_VARIABLE = "COTENANT_SESSION_ID";
/** Dispatch tells what it starts which of its workers it is of. */
export const WORKER_VARIABLE = "COTENANT_WORKER";

/** Who is asking, and in which run. The first source that says so decides. */
export async function resolveAgent(question: AgentQuestion): Promise<AgentIdentity> {
  const harness = detectHarness(question.env);
  const member = await memberOf(question, harness);
  const { agentId, agentFrom } = await resolveAgentId(question, harness, member);
  const type = agentType(agentId);
  const starter = harness?.name ?? (question.env[WORKER_VARIABLE] ? "a worker of cotenant dispatch" : null);
  if (starter !== null && (type === "human" || type === "admin"))
    throw notForHarness(agentId, agentFrom, starter);
  return { agentId, agentFrom, ...resolveSession(question, harness, member), harness };
}

async function memberOf(
  { platform, controlDir }: AgentQuestion,
  harness: Harness | null,
): Promise<FamilyMember | null> {
  const sessionId = harness?.sessionId ?? null;
  if (controlDir === null || harness === null || sessionId === null) return null;
  return readFamilyNote(platform, controlDir, { ...harness, sessionId });
}

async function resolveAgentId(
  question: AgentQuestion,
  harness: Harness | null,
  member: FamilyMember | null,
): Promise<Pick<AgentIdentity, "agentId" | "agentFrom">> {
  const { platform, env, home, isTerminal, flags } = question;
  if (flags?.agentId !== undefined) {
    return { agentId: parse(parseAgentId, flags.agentId, "--agent-id"), agentFrom: "flag" };
  }
  if (env[AGENT_VARIABLE]) {
    return { agentId: parse(parseAgentId, env[AGENT_VARIABLE], AGENT_VARIABLE), agentFrom: "environment" };
  }
  // A harness that keeps its session to itself cannot tell two of its agents apart: it is no identity.
  if (harness !== null && harness.sessionId !== null) {
    return {
      agentId: member?.agentId ?? harnessAgentId(platform.digest, harness.name, harness.sessionId),
      agentFrom: "harness",
    };
  }
  const file = await readAgentFile({ platform, env, home });
  if (file !== null && file.agentId !== null) return { agentId: file.agentId, agentFrom: "agent.toml" };
  if (isTerminal && harness === null) {
    const { processes } = platform;
    const named = env["USER"] || env["LOGNAME"] || env["USERNAME"] || processes.userName();
    const user = named || processes.self().user;
    return { agentId: humanAgentId(user), agentFrom: "terminal" };
  }
  throw nobody(harness);
}

function resolveSession(
  { platform, env, flags }: AgentQuestion,
  harness: Harness | null,
  member: FamilyMember | null,
): Pick<AgentIdentity, "sessionId" | "sessionFrom"> {
  if (flags?.session !== undefined) {
    return { sessionId: parse(parseSessionId, flags.session, "--session"), sessionFrom: "flag" };
  }
  if (env[SESSION_VARIABLE]) {
    return {
      sessionId: parse(parseSessionId, env[SESSION_VARIABLE], SESSION_VARIABLE),
      sessionFrom: "environment",
    };
  }
  if (harness !== null && harness.sessionId !== null) {
    const sessionId = member?.sessionId ?? harnessSessionId(platform.digest, harness.sessionId);
    return { sessionId, sessionFrom: "harness" };
  }
  return { sessionId: DEFAULT_SESSION, sessionFrom: "default" };
}

export function humanAgentId(user: string): AgentId {
  // Windows puts the domain before the name; accents are dropped rather than the letters below them.
  const name = user
    .slice(user.lastIndexOf("\\") + 1)
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .replace(/[^A-Za-z0-9._@+-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+|-+$/g, "")
    .slice(0, 100);
  return orThrow(parseAgentId(`human:${name === "" ? "unnamed" : name}`));
}

function parse<T>(parser: (text: string) => T, text: string, from: string): Exclude<T, { refused: true }> {
  const value = parser(text);
  if (!isRefusal(value)) return value as Exclude<T, { refused: true }>;
  throw new CotenantError("E_USAGE", `${from}: ${value.message}`, {
    hint: value.hint,
    data: { from, value: printable(text) },
  });
}

function nobody(harness: Harness | null): CotenantError {
  if (harness === null) {
    return new CotenantError("E_AGENT_ID_REQUIRED", "nobody said who is asking, and this is no terminal", {
      hint: `run: export ${AGENT_VARIABLE}=agent:your-name (a different name for every agent); a person adds --agent-id human:<you>`,
    });
  }
  const line = `export ${AGENT_VARIABLE}=agent:${harness.name}-1`;
  return new CotenantError(
    "E_AGENT_ID_REQUIRED",
    `${harness.name} does not say which of its sessions is asking`,
    {
      hint: `run: ${line} (a different name for every agent), or give --agent-id`,
      data: { harness: harness.name },
    },
  );
}

function notForHarness(agentId: AgentId, from: AgentSource, starter: string): CotenantError {
  const name = /^[a-z]+$/.test(starter) ? `${starter}-1` : "your-name";
  return policyError(
    `${agentId} is for people, and this command was started by ${starter} (the id came from: ${from})`,
    `run: export ${AGENT_VARIABLE}=agent:${name}, or let a person run the command in a terminal`,
    { agent_id: agentId, source: from, harness: starter },
  );
}
