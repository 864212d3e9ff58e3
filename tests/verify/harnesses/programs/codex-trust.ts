import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { TrialMachine } from "../../../../src/features/harnesses/real-canary/headless";
import type { Json } from "../../../../src/features/harnesses/real-canary/wire/wire";

const MOST_MS = 60_000;

/**
 * What Codex writes into its settings when a person agrees to hooks: the hash of each definition, as it computes it itself.
 * Its app server tells the hashes; nothing else does.
 */
export async function trustOfAllHooks(binary: string, { home, repo }: TrialMachine): Promise<string> {
  const server = spawn(binary, ["app-server"], {
    cwd: repo,
    env: { PATH: "/usr/bin:/bin", HOME: home },
    stdio: ["pipe", "pipe", "ignore"],
    timeout: MOST_MS,
    killSignal: "SIGKILL",
  });
  const send = (message: object) => server.stdin.write(`${JSON.stringify(message)}\n`);
  try {
    send({ id: 1, method: "initialize", params: { clientInfo: { name: "cotenant", version: "0" } } });
    for await (const line of createInterface(server.stdout)) {
      const { id, result }: Json = JSON.parse(line);
      if (id === 1) {
        send({ method: "initialized" });
        send({ id: 2, method: "hooks/list", params: { cwds: [repo] } });
      } else if (id === 2) {
        const hooks: Json[] = result.data.flatMap((place: Json) => place.hooks);
        return hooks.map(({ key, currentHash }) => trusted(key, currentHash)).join("");
      }
    }
    throw new Error("Codex's app server said nothing about hooks");
  } finally {
    server.kill("SIGKILL");
  }
}

function trusted(key: string, hash: string): string {
  return `\n[hooks.state.${JSON.stringify(key)}]\ntrusted_hash = ${JSON.stringify(hash)}\n`;
}
