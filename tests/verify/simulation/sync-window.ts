import { layoutOf } from "../../../src/store/layout";
import type { Happening } from "../../../testing/simulator";
import { CONTROL } from "../../store/stage";

const { log, synced, syncFailed } = layoutOf(CONTROL);
const SYNCS: ReadonlySet<string> = new Set(["datasync", "datasyncInBackground", "sync"]);

/**
 * ADR 0009: between the kernel's error to one process and the note that this process leaves for the others, somebody
 * else may take its own successful sync for good. What is acknowledged in that window is weakened to "detected". Open
 * for as long as somebody has heard of a failed sync of the log and has not said so.
 */
export class SyncWindow {
  /** Who has heard, and not told. */
  readonly #silent = new Set<string>();
  /** Who has synced meanwhile, or believed whoever has, and may not have heard in time. */
  readonly #trusting = new Set<string>();
  /** The mark beside the index says what such a sync has told. */
  #isMarkWrong = false;
  /** What is found damaged later may be due to that. */
  wasUsed = false;

  onOperation({ process, kind, path, error }: Happening): void {
    if (path === log && SYNCS.has(kind)) {
      this.#trusting.delete(process);
      if (error === "EIO") this.#silent.add(process);
      else if (this.#silent.size > 0) {
        this.#trusting.add(process);
        this.wasUsed = true;
      }
    } else if (path === syncFailed && kind === "openForWriting" && error === null)
      this.#silent.delete(process);
    else if (path === synced && kind === "writeAt" && this.#trusting.has(process)) this.#isMarkWrong = true;
    // Once everybody has said so it is no excuse: whoever goes by the mark looks for the note.
    else if (path === synced && kind === "readFile" && this.#isMarkWrong && this.#silent.size > 0)
      this.#trusting.add(process);
    // Another file has the log's name, and it was synced before it got it.
    else if (path === log && kind === "rename" && error === null) {
      this.#silent.clear();
      this.#trusting.clear();
      this.#isMarkWrong = false;
    }
  }

  /** Whether what this process was just told may rest on such a sync. */
  excuses(process: string): boolean {
    return this.#trusting.has(process);
  }
}
