import { mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Json } from "../../../src/features/harnesses/real-canary/wire/wire";
import { ROOT } from "../bundle";
import type { AgentProgram, StageScene } from "./program";

/** One event as the program hands it to a hook, or the environment that it gives to a shell command. */
export interface RecordedEvent {
  readonly event: string;
  readonly payload: Json;
}

const FOLDER = join(ROOT, "testing/corpora/harness-recordings");
export const ENVIRONMENT = "shell environment";

/** Variables that say who runs a command, and those that change what Git does. */
const TELLING =
  /^(?:CLAUDE|CODEX|GEMINI|OPENCODE|COPILOT|CURSOR|AI_AGENT|AGENT|COTENANT|GIT|QWEN_CODE(?:$|_SESSION|_AGENT)|PI_(?:CODING|SESSION_ID))/;
const SECRET = /KEY$|TOKEN|BACKEND|BASE_URL/;

/** Hooks that write down what they are given, one file for each call; their names are in the order of the calls. */
export class Recorder {
  readonly #folder: string;
  readonly #scene: StageScene;

  constructor(scene: StageScene, program: AgentProgram) {
    this.#scene = scene;
    this.#folder = join(dirname(scene.home), "recorded");
    rmSync(this.#folder, { recursive: true, force: true });
    mkdirSync(this.#folder);
    const hook = join(this.#folder, "hook");
    const body = [
      "#!/bin/sh",
      `call="${this.#folder}/$(date +%s%N)-$$"`,
      // Whole or not at all: a hook may be killed with its program.
      `{ printf '{"event":"%s","payload":' "$1"; cat; printf '}'; } > "$call.part" && mv "$call.part" "$call.json"`,
      "echo '{}'",
    ];
    writeFileSync(hook, `${body.join("\n")}\n`, { mode: 0o755 });
    const { path, text } = program.recordingSettings(hook);
    mkdirSync(dirname(join(scene.repo, path)), { recursive: true });
    writeFileSync(join(scene.repo, path), text);
  }

  /** For a shell command of the program's. */
  get environmentCommand(): string {
    return `env > ${this.#folder}/environment`;
  }

  /** In order, with everything that differs from run to run replaced by names in angle brackets. */
  events(): RecordedEvent[] {
    const calls = readdirSync(this.#folder)
      .filter((name) => name.endsWith(".json"))
      .sort();
    const events = calls.map((name) => JSON.parse(readFileSync(join(this.#folder, name), "utf8")));
    return neutralised([...events, ...this.#environment()], this.#scene);
  }

  #environment(): RecordedEvent[] {
    const text = readFileSync(join(this.#folder, "environment"), "utf8");
    const variables = [...text.matchAll(/^(\w+)=(.*)$/gm)].map(([, name = "", value = ""]) => [name, value]);
    const telling = variables.filter(([name = ""]) => TELLING.test(name) && !SECRET.test(name)).sort();
    return [{ event: ENVIRONMENT, payload: Object.fromEntries(telling) }];
  }
}

const IDS =
  /toolu_\d{13}_\w{8,9}|(?<=\bbg_)[0-9a-f]{8}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<=(?:ses|msg|prt|evt|snp)_)[0-9A-Za-z]{16,}|(?<="(?:agent_id|agentId|backgroundTaskId|task_id|turn_id|child_session_id)":")[0-9A-Za-z]{6,}(?=")|(?:toolu|call|chatcmpl|resp|msg|fc|ctc)_\d+_\d+/g;

/** Equal ids stay equal: who is whose parent can be seen from nothing else. */
function neutralised(
  events: readonly RecordedEvent[],
  { repo, home, installed }: StageScene,
): RecordedEvent[] {
  const names = new Map<string, string>();
  const nameOf = (id: string) => {
    const kind = /_\d+_\d+$/.test(id) ? "call" : "id";
    const count = [...names.values()].filter((name) => name.startsWith(`<${kind}-`)).length;
    if (!names.has(id)) names.set(id, `<${kind}-${count + 1}>`);
    return names.get(id)!;
  };
  return events.map((event) => {
    const text = JSON.stringify(event)
      .replaceAll(repo, "<root>")
      .replaceAll(repo.slice(1).replaceAll("/", "-"), "<root>")
      .replaceAll(home, "<home>")
      .replaceAll(dirname(home), "<room>")
      .replaceAll(installed.folder, "<program>")
      .replaceAll(realpathSync(installed.folder), "<program>")
      .replace(/(?<=["' =])\/tmp(?=\/)/g, "<tmp>")
      // How Codex calls its subagents: no path.
      .replace(/(?:\/root\/)?part_\d+/g, "<task>")
      .replace(IDS, nameOf)
      .replace(/\b20\d\d-\d\d-\d\dT\d\d[:-]\d\d(?:[:-]\d\d)?(?:\.\d+)?Z?/g, "<now>")
      .replace(/(?<=<now>-)[0-9a-f]{8}/g, "<short id>")
      .replace(/("(?:timestamp|time|start|end|created|updated)":)\d{10,}/g, '$1"<now>"')
      .replace(
        /("(?:duration|duration_ms|durationMs|totalDurationMs|averageDurationMs|execution_time_ms|pid|bash_pid)":)[\d.]+/g,
        "$10",
      )
      .replace(/(?<=pid:? )\d+/g, "0")
      .replace(/\b[0-9a-f]{64}\b/g, "<digest>")
      .replace(/\b127\.0\.0\.1:\d+/g, "<model>");
    return JSON.parse(text) as RecordedEvent;
  });
}

function fileOf({ name }: AgentProgram): string {
  return join(FOLDER, `${name}.jsonl`);
}

export function keepRecording(
  program: AgentProgram,
  version: string,
  events: readonly RecordedEvent[],
): void {
  const head = { event: "recording", payload: { program: program.title, version } };
  mkdirSync(FOLDER, { recursive: true });
  const lines = [head, ...events].map((event) => JSON.stringify(event));
  writeFileSync(fileOf(program), `${lines.join("\n")}\n`);
}

/** Null where there is none yet. */
export function recordingOf(program: AgentProgram): RecordedEvent[] | null {
  try {
    const lines = readFileSync(fileOf(program), "utf8").trimEnd().split("\n");
    return lines.slice(1).map((line) => JSON.parse(line));
  } catch {
    return null;
  }
}

/** Which events there are, with which fields: what an adapter relies on. */
export function shapesOf(events: readonly RecordedEvent[]): Set<string> {
  return new Set(
    events
      .filter(({ event }) => event !== ENVIRONMENT)
      .flatMap(({ event, payload }) => {
        const tool = payload.tool_name ?? payload.toolName ?? payload.input?.tool;
        const about = tool === undefined ? event : `${event} of ${tool}`;
        return Object.keys(payload).map((field) => `${about}: ${field}`);
      }),
  );
}
