import { makeUlid, type Ulid } from "../kernel/ids";
import type { Platform } from "./platform";

export function newUlid({ clock, random }: Pick<Platform, "clock" | "random">): Ulid {
  return makeUlid(clock.wallMs(), random.bytes(10));
}
