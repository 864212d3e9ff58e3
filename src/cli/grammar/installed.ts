import type { Context } from "./command";

/** What files of others are to start: the program that runs now. */
export function installedFrom({ program }: Pick<Context, "program">) {
  return { node: process.execPath, program };
}
