import { LogCheck } from "../../testing/checker/log-check";
import { GrowingFile, LogFiles } from "../../testing/checker/log-files";
import { thingsOf } from "../../testing/checker/things";
import type { Verdict } from "../../testing/checker/verdict";
import { witnessPath } from "../../testing/checker/witness";
import { WitnessCheck } from "../../testing/checker/witness-check";
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
