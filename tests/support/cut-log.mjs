/**
 * Cuts the log's last line after each of its bytes in turn and lets the library read and write then.
 * Prints one JSON line per cut that has come out wrong. A process of its own: the library keeps files open.
 *
 *   node cut-log.mjs '{"library", "root", "control", "index", "log", "before", "from", "to"}'
 */
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const job = JSON.parse(process.argv[2]);
const { openRepository } = createRequire(import.meta.url)(job.library);
const log = readFileSync(job.log);
const file = `${job.control}/claims.jsonl`;

async function tryCut(size) {
  rmSync(`${job.control}/index`, { recursive: true, force: true });
  cpSync(job.index, `${job.control}/index`, { recursive: true });
  // In place: to the store it is the same file, only shorter.
  writeFileSync(file, log.subarray(0, size));
  const repo = await openRepository({ cwd: job.root, agentId: "agent:next" });
  const keys = async () => (await repo.list()).map(({ lease }) => lease.key).sort();
  const seen = await keys();
  await repo.acquire({ resource: "probe" });
  const after = (await keys()).filter((key) => key !== "resource:probe");
  const kept = readFileSync(file).subarray(0, job.before);
  return { seen, after, intact: kept.equals(log.subarray(0, job.before)) };
}

for (let size = job.from; size < job.to; size++) {
  try {
    process.stdout.write(`${JSON.stringify({ size, ...(await tryCut(size)) })}\n`);
  } catch (error) {
    process.stdout.write(`${JSON.stringify({ size, failed: error.code ?? error.message })}\n`);
  }
}
