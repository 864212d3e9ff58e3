import * as fs from "node:fs";
import * as path from "node:path";
import { pathToFileURL } from "node:url";
import type { Stage, ToolCall } from "./dialect";

type Handler = (input: object, output: object) => Promise<void>;

interface Plugin {
  readonly "tool.execute.before"?: Handler;
  readonly "tool.execute.after"?: Handler;
  readonly "chat.message"?: Handler;
  readonly event?: (input: { event: { type: string; properties: object } }) => Promise<void>;
}

/** opencode runs its hooks in its own process: programs that it loads from two directories. */
export class OpencodePlugins {
  readonly #stage: Stage;
  #plugins: readonly Plugin[] = [];
  calls = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  async load(): Promise<void> {
    const { root, home } = this.#stage;
    const plugins: Plugin[] = [];
    for (const directory of [
      path.join(home, ".config/opencode/plugins"),
      path.join(root, ".opencode/plugins"),
    ]) {
      const names = fs.existsSync(directory)
        ? fs.readdirSync(directory).filter((name) => /\.[jt]s$/.test(name))
        : [];
      for (const name of names) {
        const loaded = (await import(pathToFileURL(path.join(directory, name)).href)) as Record<
          string,
          unknown
        >;
        // Every function that a module exports is a plugin.
        for (const make of Object.values(loaded))
          if (typeof make === "function") plugins.push((await make(this.#context())) as Plugin);
      }
    }
    this.#plugins = plugins;
  }

  #context(): object {
    const { root } = this.#stage;
    return { project: { id: "p" }, client: {}, directory: root, worktree: root };
  }

  /** What a plugin threw: then the tool does not run. */
  async before({ tool, input, id }: ToolCall): Promise<string | null> {
    try {
      for (const plugin of this.#plugins) {
        this.calls++;
        await plugin["tool.execute.before"]?.(
          { tool, sessionID: this.#stage.session, callID: id },
          { args: input },
        );
      }
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** What plugins added to the tool's output. */
  async after({ tool, input, id }: ToolCall, output: string): Promise<string> {
    const result = { title: tool, output, metadata: {} };
    for (const plugin of this.#plugins)
      await plugin["tool.execute.after"]?.(
        { tool, sessionID: this.#stage.session, callID: id, args: input },
        result,
      );
    return result.output.slice(output.length).trim();
  }

  async prompt(text: string): Promise<void> {
    for (const plugin of this.#plugins)
      await plugin["chat.message"]?.(
        { sessionID: this.#stage.session, agent: "build" },
        { message: {}, parts: [{ type: "text", text }] },
      );
  }

  async event(type: "session.idle" | "session.deleted" | "session.error"): Promise<void> {
    const { session } = this.#stage;
    const properties = type === "session.deleted" ? { info: { id: session } } : { sessionID: session };
    for (const plugin of this.#plugins) await plugin.event?.({ event: { type, properties } });
  }
}
