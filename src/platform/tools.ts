import type { Commands } from "./commands";
import type { Trees } from "./trees";

/** What only some operations need of a machine: loaded by the first that does. */
export interface Tools {
  trees(): Promise<Trees>;
  commands(): Promise<Commands>;
}
