import * as os from "node:os";
import { nodeGit } from "../git-node";
import { nodePlatform } from "./node";

/** Everything real that a caller's place and identity are read from. */
export function thisMachine() {
  return {
    platform: nodePlatform(),
    git: nodeGit(),
    env: process.env as Readonly<Record<string, string | undefined>>,
    cwd: process.cwd(),
    home: os.homedir() || null,
  };
}
