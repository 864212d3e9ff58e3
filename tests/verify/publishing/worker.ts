/**
 * Publishes until it is killed: one file of its own, to everybody's branch or to its own. What was acknowledged is said on
 * standard output, one line each, before the next one begins.
 */
import { writeSync } from "node:fs";
import { openRepository } from "../../../src/index";
import { isCutOff } from "../../../src/platform/git";

interface Job {
  readonly root: string;
  readonly index: number;
  readonly life: number;
  readonly branches: readonly string[];
}

async function main({ root, index, life, branches }: Job): Promise<void> {
  const repository = await openRepository({ cwd: root, agentId: `agent:p${index}` });
  const path = `dir-${index}/file.txt`;
  await repository.acquire({ file: path }, { bind: "process", wait: { timeoutMs: 60_000 } });
  writeSync(1, "ready\n");
  for (let round = 0; ; round++) {
    const content = `${index}.${life}.${round}\n`;
    const branch = branches[round % branches.length]!;
    const changes = [{ op: "put", path, content }] as const;
    try {
      const { commit } = await repository.publish({ branch, message: content.trim(), changes });
      writeSync(1, `${branch} ${commit} ${content}`);
    } catch (error) {
      // A Git that was asked something was killed: it is told so, and goes on.
      if (!isCutOff(error)) throw error;
    }
  }
}

main(JSON.parse(process.argv[2]!) as Job).catch((error: unknown) => {
  writeSync(2, `${error instanceof Error ? error.stack : error}\n`);
  process.exit(1);
});
