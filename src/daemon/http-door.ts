import { randomInt } from "node:crypto";
import * as fs from "node:fs";
import * as net from "node:net";
import type { Workspace } from "../coordinator/workspace";
import { CotenantError } from "../errors/cotenant-error";
import type { HttpDoor } from "../features/harnesses/command-line";
import { readPlainFile } from "../platform/node/plain-file";
import { type HookPlace, hookPlace } from "./hook-place";
import { randomHex } from "./place";

/** Loopback, and nothing else. */
export const LOOPBACK = "127.0.0.1";
/** Below what systems hand out to those who do not care. */
const [FIRST_PORT, PORTS] = [20_000, 10_000];
const ATTEMPTS = 50;

/** Where harnesses ask that can only ask over HTTP; null where nobody has told them to. Chosen once: their settings name it. */
export function readDoor({ door }: HookPlace): HttpDoor | null {
  try {
    const stat = fs.statSync(door, { throwIfNoEntry: false });
    if (stat === undefined || (stat.mode & 0o077) !== 0) return null;
    const said = JSON.parse(readPlainFile(door)) as Record<string, unknown>;
    const { schema_version: version, port, token } = said;
    if (version !== 1 || typeof token !== "string" || !/^[0-9a-f]{32,}$/.test(token)) return null;
    return Number.isInteger(port) && Number(port) > 0 && Number(port) < 65_536
      ? { port: Number(port), token }
      : null;
  } catch {
    return null;
  }
}

/** Whether a harness of this repository asks over HTTP, and refuses every write while nobody answers. */
export function asksOverHttp({
  repository,
  surroundings,
}: Pick<Workspace, "repository" | "surroundings">): boolean {
  const place = hookPlace(repository.controlDir, surroundings);
  return place !== null && readDoor(place) !== null;
}

export const NOTHING_WRITTEN =
  "Claude Code asks the daemon over HTTP here, and can write nothing while none is running";

/** A port that nobody uses, and a token. Nothing is written. */
export async function newDoor(): Promise<HttpDoor> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = FIRST_PORT + randomInt(PORTS);
    if (await isFree(port)) return { port, token: randomHex(24) };
  }
  throw new CotenantError("E_DAEMON", "no port of this machine is free", {
    hint: "use --via daemon, which needs none",
  });
}

export function writeDoor({ door, controlDir }: HookPlace, { port, token }: HttpDoor): void {
  const fresh = `${door}.new`;
  fs.rmSync(fresh, { force: true });
  const text = `${JSON.stringify({ schema_version: 1, control: controlDir, port, token }, null, 2)}\n`;
  fs.writeFileSync(fresh, text, { mode: 0o600, flag: "wx" });
  fs.renameSync(fresh, door);
}

export function removeDoor({ door }: HookPlace): void {
  fs.rmSync(door, { force: true });
}

export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once("error", () => resolve(false));
    server.listen({ host: LOOPBACK, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
