import * as os from "node:os";
import { nodeGit } from "../git-node";
import type { Tools } from "../tools";
import { nodePlatform } from "./node";

export const NODE_TOOLS: Tools = {
  trees: async () => (await import("./trees")).nodeTrees(),
  commands: async () => (await import("./commands")).nodeCommands(),
};

/** Everything real that a caller's place and identity are read from. */
export function thisMachine() {
  return {
    platform: nodePlatform(),
    git: nodeGit(),
    tools: NODE_TOOLS,
    env: process.env as Readonly<Record<string, string | undefined>>,
    cwd: process.cwd(),
    home: os.homedir() || null,
  };
}
