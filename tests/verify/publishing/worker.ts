/**
 * Publishes until it is killed: one file of its own, to everybody's branch or to its own. What was acknowledged is said on
 * standard output, one line each, before the next one begins.
 */
import { writeSync } from "node:fs";
import { openRepository } from "../../../src/index";

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
    const { commit } = await repository.publish({
      branch,
      message: content.trim(),
      changes: [{ op: "put", path, content }],
    });
    writeSync(1, `${branch} ${commit} ${content}`);
  }
}

main(JSON.parse(process.argv[2]!) as Job).catch((error: unknown) => {
  writeSync(2, `${error instanceof Error ? error.stack : error}\n`);
  process.exit(1);
});
