import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import type { Conversation, Script, Talk } from "../../../src/features/harnesses/real-canary/conversation";
import { inTime } from "../../../src/features/harnesses/real-canary/deadline";
import { listen } from "../../../src/features/harnesses/real-canary/model-server";
import { OutsideProcess } from "../../../src/features/harnesses/real-canary/outside-process";
import { PROGRAM_OF } from "../../../src/features/harnesses/real-canary/programs/all";
import type { Json } from "../../../src/features/harnesses/real-canary/wire/wire";
import { BIN, MOST_MS, type Stage, until } from "./stage";

/** Who starts the dispatcher, and writes its issues. */
export const PERSON = "human:owner";

/** The line of the dispatcher's own says no model, as few people do; these name one that the programs know. */
const MODELS = { ANTHROPIC_MODEL: "claude-sonnet-4-5", GEMINI_MODEL: "gemini-2.5-pro" };

/** Of what the dispatcher starts, and of nothing else. */
const MARK = "COTENANT_LEASE_ID";

/** One run of `cotenant dispatch --agent`, with the program on the PATH under the name that its template calls. */
export class Dispatching {
  readonly #stage: Stage;
  readonly #conversations: Conversation[] = [];
  #process: OutsideProcess | null = null;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** An issue whose description has the agent that takes it play a script. Answers its id. */
  async issue(title: string, script: Script): Promise<string> {
    const { conversation, mention } = this.#stage.open(script);
    this.#conversations.push(conversation);
    const words = ["issue", "create", "--title", title, "--description", mention, "--json"];
    const { stdout } = await this.#stage.cotenant(words, PERSON);
    return JSON.parse(stdout).data.issue.id;
  }

  /** `port`: of another server than the scripted model's own. */
  async start(args: readonly string[], port = this.#stage.port): Promise<void> {
    const stage = this.#stage;
    const { program, installed, home, repo } = stage;
    await stage.git("add", "-A");
    await stage.git("commit", "-qm", "issues", "--no-verify");
    const scene = { home, repo, installed, port };
    program.prepare(scene);
    const { env } = program.start(scene, "", false);
    const path = `${onPath(stage)}:${stage.env["PATH"]}`;
    this.#process = new OutsideProcess({
      command: join(BIN, "cotenant"),
      args: ["dispatch", "--agent", program.harness, "--retries", "0", ...args],
      cwd: repo,
      env: { ...stage.env, ...env, ...MODELS, PATH: path, COTENANT_AGENT_ID: PERSON },
      outputFile: join(dirname(home), "dispatch.txt"),
      isOwnGroup: false,
    });
    this.#process.exited.then((how) => this.#hangUp(`${how}: ${this.output.slice(-600)}`));
  }

  get output(): string {
    return this.#process?.output ?? "";
  }

  /** Waits for its end, and for the scripts'; what these throw is thrown. Answers what it reports. */
  async finish(): Promise<Json> {
    await this.over();
    for (const { ended } of this.#conversations) await ended;
    return this.report;
  }

  /** Only for its own end: whoever was stopped plays nothing to the end. */
  async over(): Promise<void> {
    try {
      await inTime(this.#process!.exited, `it did not end, and printed: ${this.output.slice(-600)}`, MOST_MS);
    } finally {
      this.kill();
    }
  }

  /** The last line that it printed. */
  get report(): Json {
    return JSON.parse(this.output.trimEnd().split("\n").at(-1) ?? "null").data;
  }

  /** Throws once it is over: for whoever waits for something else meanwhile. */
  async failed(): Promise<never> {
    await this.#process!.exited;
    for (const { ended } of this.#conversations) await ended;
    throw new Error(`it ended too early, and printed: ${this.output.slice(-600)}`);
  }

  /** It alone, as the system does it when memory is short. */
  kill(): void {
    this.#process?.kill();
  }

  /** Whether everything that the dispatcher has started ends. */
  async leavesNothing(mostMs: number): Promise<boolean> {
    return until(() => this.running().length === 0, mostMs);
  }

  /** What the dispatcher has started, directly or not, and is still alive. */
  running(): string[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .flatMap((pid) => {
        try {
          const variables = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
          const isOurs = variables.includes(`HOME=${this.#stage.home}`);
          if (!isOurs || !variables.some((one) => one.startsWith(`${MARK}=`))) return [];
          return [readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").slice(0, 80)];
        } catch {
          // It has ended.
          return [];
        }
      });
  }

  #hangUp(why: string): void {
    for (const conversation of this.#conversations) conversation.hangUp(why);
  }
}

/** Where the agent that plays this is at work, as its own shell sees it. */
export async function worktreeOf(stage: Stage, talk: Talk): Promise<string> {
  const told = await stage.shell(talk, "echo at=$PWD=");
  const root = /at=(\/[^=\n]*)=/.exec(told)?.[1];
  if (root === undefined) throw new Error(`the shell told no directory: ${told}`);
  return root;
}

/** The program in a folder of its own, under the name that people know it by. */
export function onPath({ program, installed, home }: Stage): string {
  const folder = join(dirname(home), "bin");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  const words = program.launcher(installed).map((word) => `'${word}'`);
  const text = `#!/bin/sh\nexec ${words.join(" ")} "$@"\n`;
  writeFileSync(join(folder, PROGRAM_OF[program.harness].command), text, { mode: 0o755 });
  return folder;
}

/** In front of the scripted model: passes on what is asked, until it is broken. */
export interface BreakableServer {
  readonly port: number;
  /** From now on every request is refused, with these words. */
  break(words: string): void;
  close(): void;
}

export async function breakableServer(modelPort: number): Promise<BreakableServer> {
  let words: string | null = null;
  const server = createServer((asked, answer) => {
    if (words !== null) {
      asked.resume();
      answer.writeHead(400, { "content-type": "application/json" });
      answer.end(JSON.stringify({ error: { type: "invalid_request_error", code: 400, message: words } }));
      return;
    }
    const { method, url: path, headers } = asked;
    const passed = request({ host: "127.0.0.1", port: modelPort, method, path, headers }, (told) => {
      answer.writeHead(told.statusCode ?? 500, told.headers);
      told.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    asked.pipe(passed);
  });
  await listen(server);
  return {
    port: (server.address() as AddressInfo).port,
    break(said) {
      words = said;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
