import type { Descriptor } from "../platform/platform";
import type { CensusName } from "./census";
import type { Overlay } from "./overlay";
import type { Head } from "./replay";

/** What a critical section stands on: the log's end, and how to know what it adds up to. */
export interface Ground {
  readonly fd: Descriptor;
  /** The log's end before this critical section added to it. */
  readonly base: Head;
  head: Head;
  /** What the log says beyond the index. */
  readonly overlay: Overlay;
  /** Null when there is none to go by: the overlay is the whole view. */
  readonly index: Reach | null;
}

/** Which build of the index, and up to which line of the log. */
export interface Reach {
  readonly census: CensusName;
  readonly head: Head;
}

export function groundOf(fd: Descriptor, head: Head, overlay: Overlay, index: Reach | null): Ground {
  return { fd, base: head, head, overlay, index };
}
