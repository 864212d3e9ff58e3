import { parseGitVersion } from "../platform/git";
import { nodeGit } from "../platform/git-node";
import type { Command } from "./grammar/command";
import { version } from "./grammar/version";

export const command: Command = {
  about: "Shows the versions of cotenant, Node.js and Git.",
  flags: {},
  examples: ["cotenant version"],
  words: { min: 0, max: 0 },
  remindsOfExpiry: false,
  async run() {
    const git = await gitVersion();
    const data = {
      cotenant: version(),
      node: process.versions.node,
      git,
      platform: `${process.platform}-${process.arch}`,
    };
    return {
      data,
      text: `cotenant ${data.cotenant} (Node ${data.node}, Git ${git ?? "missing"}, ${data.platform})`,
    };
  },
};

async function gitVersion(): Promise<string | null> {
  try {
    const { stdout } = await nodeGit().run(["version"], { cwd: process.cwd() });
    return parseGitVersion(new TextDecoder().decode(stdout))?.text ?? null;
  } catch {
    return null;
  }
}
