import { claimEventOf, decodeLine } from "../../../src/store/envelope";
import { Replay } from "../../../src/store/replay";
import { leaseFromWire, leaseToWire } from "../../../src/store/wire";
import type { Prng } from "../../../testing/simulator";
import { sha256 } from "../../store/stage";
import { corpus, type Sample } from "./corpus";
import { expectThat, Finding } from "./finding";
import { encode, Mutator } from "./mutator";
import type { Count } from "./target";
import { wholeLine } from "./whole-lines";

const digest = { sha256 };

/** Single lines of the log: read, or passed over, and never anything else. */
export class LogLines {
  readonly #valid: readonly Sample[] = corpus("log-lines/valid.txt");
  readonly #invalid: readonly Sample[] = corpus("log-lines/invalid.txt");

  checkCorpora(count: Count): void {
    for (const [name, samples] of [
      ["valid", this.#valid],
      ["invalid", this.#invalid],
    ] as const) {
      for (const { bytes, line } of samples) {
        const isTaken = examine(bytes);
        const where = `testing/corpora/log-lines/${name}.txt:${line}`;
        expectThat(isTaken === (name === "valid"), `${where} is ${isTaken ? "taken" : "passed over"}`);
        count("corpus: log-lines");
      }
    }
  }

  try(prng: Prng, count: Count): void {
    const mutator = new Mutator(prng);
    const { text } = prng.pick(prng.chance(0.8) ? this.#valid : this.#invalid);
    const isForged = prng.chance(0.5);
    const isTaken = examine(isForged ? forged(mutator, text) : mutator.bytes(encode(text)));
    count(`${isForged ? "forged" : "damaged"} line ${isTaken ? "taken" : "passed over"}`);
  }
}

/** True when the line counts. */
function examine(bytes: Uint8Array): boolean {
  const shown = JSON.stringify(Buffer.from(bytes).toString("utf8").slice(0, 300));
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  const isWhole = isSummed(bytes);
  try {
    const line = decodeLine(digest, text);
    // Bytes that are no UTF-8 read as one and the same character; the sum is over what was read.
    const isGarbled = text.includes("\ufffd");
    expectThat(line === null || isWhole || isGarbled, `a line without its sum is taken: ${shown}`);
    if (line === null || new Replay().absorb(line, bytes.length) !== null) return false;
    for (const lease of claimEventOf(line)?.leases ?? []) {
      const again = JSON.stringify(leaseToWire(lease));
      const read = JSON.stringify(leaseToWire(leaseFromWire(JSON.parse(again))));
      expectThat(read === again, `what was read cannot be written and read again: ${shown}`);
    }
    return true;
  } catch (error) {
    if (error instanceof Finding) throw error;
    throw new Finding(`${error instanceof Error ? error.stack : error} for ${shown}`);
  }
}

function isSummed(bytes: Uint8Array): boolean {
  try {
    return wholeLine(Buffer.from(bytes)) !== null;
  } catch {
    // The sum is right, and what it covers is no JSON.
    return true;
  }
}

/** Other content, and the sum that goes with it. */
function forged(mutator: Mutator, text: string): Uint8Array {
  const cut = text.lastIndexOf(',"sum":"');
  const body = cut === -1 ? text : `${text.slice(0, cut)}}`;
  const changed = mutator.prng.chance(0.7) ? changedValue(mutator, body) : mutator.text(body);
  return encode(`${changed.slice(0, -1)},"sum":"${sha256(changed).slice(0, 32)}"}`);
}

function changedValue(mutator: Mutator, body: string): string {
  try {
    return mutator.json(JSON.parse(body));
  } catch {
    return mutator.text(body);
  }
}
