import type { Verdict } from "../../testing/checker/verdict";
import { Workspace } from "../coordinator/workspace";
import { nodeGit } from "../platform/git-node";
import { thisMachine } from "../platform/node/this-machine";
import type { Books } from "./books";
import { Inspector } from "./inspector";
import type { Scratch } from "./scratch";

/** Everything from its first line again, against what everybody said, and against what the store itself shows. */
export async function finalCheck(scratch: Scratch, books: Books, verdict: Verdict): Promise<Inspector> {
  const again = new Inspector(scratch, verdict);
  again.look();
  books.compare(again.log, verdict);
  const { env } = scratch;
  const workspace = await Workspace.open({
    ...thisMachine(),
    env,
    git: nodeGit(env),
    cwd: scratch.worktrees[0]!,
    home: env["HOME"] ?? null,
    isTerminal: false,
  });
  const shown = (await workspace.coordinator.list({ lapsed: true })).map(({ lease }) => lease.leaseId);
  const { open } = again.log;
  verdict.expect(
    "the index shows what the log says",
    shown.length === open.size && shown.every((id) => open.has(id)),
    () => `${shown.length} leases in the index, ${open.size} in the log`,
  );
  const waiters = await workspace.coordinator.waiters();
  verdict.expect("nobody is left in the queue", waiters.length === 0, () => `${waiters.length} tickets`);
  return again;
}
