import { LogCheck } from "../../testing/checker/log-check";
import { GrowingFile, LogFiles } from "../../testing/checker/log-files";
import { thingsOf } from "../../testing/checker/things";
import type { Verdict } from "../../testing/checker/verdict";
import { witnessPath } from "../../testing/checker/witness";
import { WitnessCheck } from "../../testing/checker/witness-check";
import { Workspace } from "../coordinator/workspace";
import { nodeGit } from "../platform/git-node";
import { thisMachine } from "../platform/node/this-machine";
import type { Books } from "./books";
import type { Scratch } from "./scratch";

/** Reads the log and the witnesses as they grow, and checks each line as it comes. */
export class Inspector {
  readonly log: LogCheck;
  readonly #files: LogFiles;
  readonly #witnesses: readonly {
    readonly path: string;
    readonly file: GrowingFile;
    readonly check: WitnessCheck;
  }[];

  constructor(scratch: Scratch, verdict: Verdict, isDead?: (pid: number) => boolean) {
    const { control, witness, ground } = scratch;
    this.#files = new LogFiles(control);
    this.log = new LogCheck(verdict, isDead);
    this.#witnesses = thingsOf(ground).map((thing) => ({
      path: witnessPath(witness, thing),
      file: new GrowingFile(),
      check: new WitnessCheck(thing, ground, this.log, verdict),
    }));
  }

  get segments(): number {
    return this.#files.segments;
  }

  look(): void {
    // The witnesses first: whatever they rely on is in the log by then.
    const said = this.#witnesses.map(({ path, file, check }) => ({ check, lines: file.read(path) }));
    for (const line of this.#files.read()) this.log.take(line);
    for (const { check, lines } of said) for (const line of lines) check.take(line);
  }
}

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
