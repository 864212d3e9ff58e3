import { type AgentId, parseAgentId, printable } from "../kernel/ids";
import { LIMITS } from "../kernel/policy";
import { isRefusal } from "../kernel/refusal";
import type { Platform } from "../platform/platform";
import { nearest } from "./nearest";
import { userConfigDirectory } from "./places";
import { type ConfigProblem, configError } from "./problem";
import type { IntSetting } from "./setting";
import { isProblem, lineOf, readToml, type TomlDocument } from "./toml-file";
import { isTable, isWrong, valueFromToml, type WrongValue } from "./values";

/** `~/.config/cotenant/agent.toml`: who the user of this machine is, and how they like to work. */
export interface AgentFile {
  readonly file: string;
  readonly agentId: AgentId | null;
  readonly createdAt: string | null;
  readonly description: string | null;
  readonly defaultTtlSecs: number | null;
  /** Whether a daemon shows that this person's sessions are alive, and how often it does so. */
  readonly autoHeartbeat: boolean;
  readonly heartbeatSecs: number | null;
}

const common = { tighten: "free", meaning: "" } as const;
const TTL: IntSetting = { ...common, type: "int", min: 1, max: LIMITS.ttlSecs, default: 600 };
const BEAT: IntSetting = { ...common, type: "int", min: 5, max: 3_600, default: 30 };
const MAX_DESCRIPTION = 1_000;

/** A checked value, or what is wrong with it, to be read after its key. */
type Check = (raw: unknown) => { value: AgentValue } | { wrong: string };
export type AgentValue = string | number | boolean;

/** A key of the file, as `config show` has it. */
export interface AgentSetting {
  readonly key: string;
  /** Null where nothing is set, and there is no default. */
  readonly value: AgentValue | null;
  readonly source: "user" | "default";
  readonly place: string;
  readonly line: number | null;
  readonly default: AgentValue | null;
}

const DEFAULTS: Readonly<Record<string, AgentValue>> = { "behavior.auto_heartbeat": false };

const KEYS: Readonly<Record<string, Check>> = {
  "agent.id": (raw) => {
    const id = typeof raw === "string" ? parseAgentId(raw) : null;
    return id === null || isRefusal(id)
      ? { wrong: "must be an agent id like agent:copilot-1" }
      : { value: id };
  },
  "agent.created_at": (raw) => {
    const date = raw instanceof Date ? raw : typeof raw === "string" ? new Date(raw) : null;
    if (date === null || Number.isNaN(date.getTime())) return { wrong: "must be a date and time" };
    return { value: date.toISOString() };
  },
  "agent.description": (raw) =>
    typeof raw === "string" && raw.length <= MAX_DESCRIPTION
      ? { value: raw }
      : { wrong: `must be text of at most ${MAX_DESCRIPTION} characters` },
  "agent.default_ttl_secs": (raw) => wrap(valueFromToml(TTL, raw)),
  "behavior.auto_heartbeat": (raw) =>
    typeof raw === "boolean" ? { value: raw } : { wrong: "must be true or false" },
  "behavior.heartbeat_interval": (raw) => wrap(valueFromToml(BEAT, raw)),
};
const SECTIONS = ["agent", "behavior"];
export const AGENT_KEYS: readonly string[] = Object.keys(KEYS);

export function isAgentKey(key: string): boolean {
  return Object.hasOwn(KEYS, key);
}

/** A value as somebody typed it. */
export function checkAgentValue(key: string, text: string): AgentValue | WrongValue {
  const trimmed = text.trim();
  const raw = /^\d{1,15}$/.test(trimmed) ? BigInt(trimmed) : { true: true, false: false }[trimmed];
  const isText = key === "agent.id" || key === "agent.created_at" || key === "agent.description";
  const checked = KEYS[key]!(isText ? text : (raw ?? text));
  return "wrong" in checked ? checked : checked.value;
}

function wrap(value: unknown): { value: AgentValue } | { wrong: string } {
  return isWrong(value) ? { wrong: value.wrong } : { value: value as AgentValue };
}

interface AgentQuestion {
  readonly platform: Platform;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string | null;
}

/** Every key that the file may have, set or not, and what is wrong in it. */
export async function inspectAgentFile(
  question: AgentQuestion,
): Promise<{ readonly settings: readonly AgentSetting[]; readonly problems: readonly ConfigProblem[] }> {
  const document = await documentOf(question);
  const values = new Map<string, AgentValue>();
  const problems =
    document === null ? [] : isProblem(document) ? [document] : [...checkSections(document, values)];
  const settings = AGENT_KEYS.map((key): AgentSetting => {
    const otherwise = DEFAULTS[key] ?? null;
    const value = values.get(key);
    if (value === undefined || document === null || isProblem(document))
      return { key, value: otherwise, source: "default", place: "default", line: null, default: otherwise };
    const line = lineOf(document.text, key.split("."));
    return { key, value, source: "user", place: document.file, line, default: otherwise };
  });
  return { settings, problems };
}

async function documentOf(question: AgentQuestion): Promise<TomlDocument | ConfigProblem | null> {
  const directory = userConfigDirectory(question);
  if (directory === null) return null;
  const document = await readToml(question.platform, `${directory}/agent.toml`, "user");
  return document === "forbidden" ? null : document;
}

/** Null when there is no such file; `E_CONFIG` when there is one that cannot be used. */
export async function readAgentFile(question: AgentQuestion): Promise<AgentFile | null> {
  const document = await documentOf(question);
  if (document === null) return null;
  if (isProblem(document)) throw configError([document]);
  const values = new Map<string, AgentValue>();
  const problems = [...checkSections(document, values)];
  if (problems.length > 0) throw configError(problems);
  const get = <T>(key: string, otherwise: T): T => (values.get(key) as T | undefined) ?? otherwise;
  return {
    file: document.file,
    agentId: get<AgentId | null>("agent.id", null),
    createdAt: get<string | null>("agent.created_at", null),
    description: get<string | null>("agent.description", null),
    defaultTtlSecs: get<number | null>("agent.default_ttl_secs", null),
    autoHeartbeat: get("behavior.auto_heartbeat", false),
    heartbeatSecs: get<number | null>("behavior.heartbeat_interval", null),
  };
}

function* checkSections(document: TomlDocument, values: Map<string, AgentValue>): Generator<ConfigProblem> {
  const { file: place, text } = document;
  for (const [section, content] of Object.entries(document.root)) {
    const known = SECTIONS.includes(section);
    if (!known || !isTable(content)) {
      const shown = printable(section, 60);
      const message = known ? `[${shown}] must be a table` : `there is no section [${shown}]`;
      const near = known ? null : nearest(section, SECTIONS);
      yield { place, line: lineOf(text, [section]), key: shown, nearest: near, message };
      continue;
    }
    for (const [name, raw] of Object.entries(content)) {
      const key = `${section}.${name}`;
      const line = lineOf(text, [section, name]);
      const check = Object.hasOwn(KEYS, key) ? KEYS[key]! : null;
      const checked = check === null ? null : check(raw);
      if (checked === null) {
        const shown = printable(key, 100);
        const message = `there is no key ${shown}`;
        yield { place, line, key: shown, nearest: nearest(key, AGENT_KEYS), message };
      } else if ("wrong" in checked) {
        yield { place, line, key, nearest: null, message: `${key} ${checked.wrong}` };
      } else {
        values.set(key, checked.value);
      }
    }
  }
}
