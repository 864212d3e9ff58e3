import { limitError } from "../../errors/cotenant-error";
import type { DispatchParts } from "./report";

/** Below what systems give to outgoing connections. */
const FIRST_PORT = 20_000;
const LAST_PORT = 29_999;
const PORTS = 10;

/**
 * Ten ports on which nobody listens now, different for each worker. Repositories begin at different places, so that workers of two
 * of them seldom look at the same ones; each range is looked at all the same.
 */
export async function freePorts(
  { areFree, workspace }: DispatchParts,
  slot: number,
  taken: ReadonlySet<number>,
): Promise<readonly [number, number]> {
  const { digest } = workspace.surroundings.platform;
  const ranges = Math.floor((LAST_PORT - FIRST_PORT + 1) / PORTS);
  const offset = Number.parseInt(digest.sha256(workspace.repository.commonDir).slice(0, 8), 16);
  for (let nth = 0; nth < ranges; nth++) {
    const from = FIRST_PORT + ((offset + slot - 1 + nth * 16) % ranges) * PORTS;
    if (!taken.has(from) && (await areFree(from, PORTS))) return [from, from + PORTS - 1];
  }
  throw limitError(
    `no ${PORTS} ports in a row are free between ${FIRST_PORT} and ${LAST_PORT}`,
    "stop servers that nobody needs any more",
  );
}
