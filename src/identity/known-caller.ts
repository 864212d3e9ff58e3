import { CotenantError } from "../errors/cotenant-error";
import {
  AGENT_VARIABLE,
  type AgentIdentity,
  type AgentQuestion,
  resolveAgent,
  SESSION_VARIABLE,
} from "./agent";

/** Who somebody is, as far as it can be told. */
export interface KnownCaller {
  /** Null where nobody has said so in a way that can be used. */
  readonly agent: AgentIdentity | null;
  /** Why something that was said does not count. */
  readonly unusable: readonly string[];
}

/**
 * For those who judge whoever it is, such as hooks. A name that cannot be used is worth no more than none: it is passed over,
 * and what would count without it does. An agent in a harness is then still that harness's.
 */
export async function knownCaller(question: AgentQuestion): Promise<KnownCaller> {
  const unusable: string[] = [];
  let asked: AgentQuestion | null = question;
  // Each round leaves out one source more.
  while (asked !== null) {
    try {
      return { agent: await resolveAgent(asked), unusable };
    } catch (error) {
      if (!(error instanceof CotenantError)) throw error;
      if (error.code === "E_AGENT_ID_REQUIRED") break;
      unusable.push(error.message);
      asked = without(asked, error);
    }
  }
  return { agent: null, unusable };
}

/** The question without what the error is about; null where that is nothing that somebody said. */
function without(question: AgentQuestion, { code, data }: CotenantError): AgentQuestion | null {
  const { env, flags } = question;
  switch (code === "E_CONFIG" ? "agent.toml" : (data["from"] ?? data["source"])) {
    case "--agent-id":
    case "flag":
      return { ...question, flags: { ...flags, agentId: undefined } };
    case "--session":
      return { ...question, flags: { ...flags, session: undefined } };
    case AGENT_VARIABLE:
    case "environment":
      return { ...question, env: { ...env, [AGENT_VARIABLE]: undefined } };
    case SESSION_VARIABLE:
      return { ...question, env: { ...env, [SESSION_VARIABLE]: undefined } };
    case "agent.toml":
      return { ...question, home: null, env: { ...env, XDG_CONFIG_HOME: undefined } };
    default:
      return null;
  }
}
