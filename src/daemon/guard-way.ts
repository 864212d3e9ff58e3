import { existsSync } from "node:fs";
import type { Surroundings, Workspace } from "../coordinator/workspace";
import { CotenantError } from "../errors/cotenant-error";
import { HARNESSES } from "../features/guard/harness";
import { VIA_NAMES } from "../features/harnesses/command-line";
import { HTTP_HARNESSES } from "../features/harnesses/entries";
import type { HarnessLevel } from "../features/harnesses/installation";
import type { GuardDaemon, Way } from "../features/harnesses/operations";
import { allRecords } from "../features/harnesses/record";
import type { HarnessName } from "../identity/harness";
import { printable } from "../kernel/ids";
import { thisBuild } from "./build";
import { guardSocketFolder, type HookPlace, hookPlace, isSafeForHooks } from "./hook-place";
import { isFree, newDoor, readDoor, removeDoor, writeDoor } from "./http-door";
import { ask, standingOf, startDaemon } from "./life";
import { daemonPlace, readRecord } from "./place";

const BY_PROGRAM: Way = { via: null, remarks: [], prepare: async () => {} };

/** `program` is what starts the daemon where there is none. */
export async function chooseWay(
  at: HarnessLevel,
  harnesses: readonly HarnessName[],
  { way, shared, program }: { readonly way: string; readonly shared: boolean; readonly program: string },
): Promise<Way> {
  if (!(VIA_NAMES as readonly string[]).includes(way))
    throw new CotenantError("E_USAGE", `--via has no "${printable(way, 60)}"`, {
      hint: `use --via ${VIA_NAMES.slice(0, -1).join(", --via ")} or --via ${VIA_NAMES.at(-1)}`,
    });
  if (way === "program") return BY_PROGRAM;
  const { workspace } = at;
  if (workspace === null || shared)
    throw new CotenantError("E_USAGE", `--via ${way} is for one worktree on this machine`, {
      hint: `a daemon is of one repository and one user: leave out ${shared ? "--shared" : "--user"}`,
    });
  const place = placeFor(workspace, way);
  return way === "http"
    ? overHttp(program, workspace, place, harnesses)
    : {
        via: { daemon: place.base, http: null },
        remarks: remarksOn(at.surroundings, place),
        prepare: async () => {},
      };
}

/** What hooks run must be nobody else's to write. */
function placeFor({ surroundings, repository }: Workspace, way: string): HookPlace {
  if (process.platform === "win32")
    throw new CotenantError("E_USAGE", `--via ${way} does not work on Windows yet`, {
      hint: "leave out --via: the program answers each event",
    });
  const place = hookPlace(repository.controlDir, surroundings);
  if (place === null)
    throw new CotenantError("E_USAGE", `--via ${way} needs a home directory, and there is none`, {
      hint: "set HOME, or leave out --via: the program answers each event",
    });
  if (isSafeForHooks(place)) return place;
  throw new CotenantError("E_PERMISSION", `others may write into ${place.folder}, or it cannot be made`, {
    hint: `run: chmod 700 ${place.folder}`,
    data: { path: place.folder },
  });
}

function remarksOn({ env }: Surroundings, place: HookPlace): string[] {
  const path = env["PATH"] ?? "";
  const hasCurl = path.split(":").some((folder) => folder !== "" && existsSync(`${folder}/curl`));
  return [
    "the first hook that finds no daemon starts one; until then, and whenever it does not answer, the program does",
    ...(guardSocketFolder(place, env) === null
      ? [
          `${place.folder} is too long a path for a socket: hooks run the program, unless XDG_RUNTIME_DIR is set`,
        ]
      : []),
    ...(hasCurl ? [] : ["there is no curl on the PATH: without it command hooks run the program"]),
  ];
}

/** Its hooks can be told to refuse when nobody answers, or they cannot. */
function refuseOpen(harnesses: readonly HarnessName[]): void {
  const other = harnesses.find((harness) => !HTTP_HARNESSES.includes(harness));
  if (other === undefined) return;
  const { title } = HARNESSES[other];
  const why =
    other === "copilot"
      ? "lets a write through when its HTTP hook gets no answer"
      : "has no HTTP hooks, or none that refuse when nobody answers";
  const overHttp = harnesses.filter((harness) => HTTP_HARNESSES.includes(harness));
  const others = harnesses.filter((harness) => !HTTP_HARNESSES.includes(harness));
  const commands = [
    ...(overHttp.length === 0 ? [] : [`cotenant agent install ${overHttp.join(" ")} --via http`]),
    `cotenant agent install ${others.join(" ")} --via daemon`,
  ];
  throw new CotenantError("E_USAGE", `${title} ${why}; nothing was written`, {
    hint: `run '${commands.join("', then '")}'`,
    data: { harness: other },
  });
}

async function overHttp(
  program: string,
  workspace: Workspace,
  place: HookPlace,
  harnesses: readonly HarnessName[],
): Promise<Way> {
  refuseOpen(harnesses);
  const known = readDoor(place);
  const isUsable = known !== null && ((await isFree(known.port)) || (await listens(workspace, known.port)));
  const door = isUsable ? known : await newDoor();
  return {
    via: { daemon: place.base, http: door },
    remarks: [
      "while the daemon is not running, Claude Code refuses every write and command: its next prompt starts the daemon",
      "Claude Code before 2.1.295 does not refuse then, but lets everything pass: use --via daemon with it",
    ],
    prepare: async () => {
      const { surroundings, repository } = workspace;
      if (door !== known) writeDoor(place, door);
      const daemon = daemonPlace(repository.controlDir);
      const { record } = await startDaemon(daemon, surroundings, program, thisBuild());
      const { port } = await ask(record, "refresh");
      if (port === door.port) return;
      throw new CotenantError("E_DAEMON", `the daemon cannot listen on port ${door.port}`, {
        hint: "run the same command again: another port is taken then",
        data: { port: door.port, log: daemon.log },
      });
    },
  };
}

/** Closes the way over HTTP once no harness of the repository goes it any more. */
export async function settleDoor(at: HarnessLevel): Promise<void> {
  const { workspace, platform, shelf } = at;
  if (workspace === null) return;
  const { controlDir } = workspace.repository;
  const place = hookPlace(controlDir, workspace.surroundings);
  if (place === null || readDoor(place) === null) return;
  if ((await allRecords(platform, shelf)).some(({ via }) => via === "http")) return;
  removeDoor(place);
  const record = readRecord(daemonPlace(controlDir));
  if (record !== null) await ask(record, "refresh").catch(() => {});
}

async function listens({ repository }: Workspace, port: number): Promise<boolean> {
  const record = readRecord(daemonPlace(repository.controlDir));
  if (record === null) return false;
  try {
    const { guard } = (await ask(record, "status")) as { guard?: { http_port?: unknown } };
    return guard?.http_port === port;
  } catch {
    return false;
  }
}

/** Where the daemon of a repository leaves its files for hooks; null where there is no home. */
export function guardPlaceIn({ repository, surroundings }: Workspace): string | null {
  return hookPlace(repository.controlDir, surroundings)?.base ?? null;
}

/** What the daemon has done for harnesses so far. Null where it does not answer, or does not answer hooks. */
export async function guardDaemon({ repository, surroundings }: Workspace): Promise<GuardDaemon | null> {
  const standing = await standingOf(surroundings.platform, daemonPlace(repository.controlDir));
  if (standing.state !== "running") return null;
  const { guard } = standing.said as { guard?: { by_harness?: unknown; http_port?: unknown } };
  if (typeof guard?.by_harness !== "object" || guard.by_harness === null) return null;
  const events = guard.by_harness as Record<string, number>;
  return { events, httpPort: typeof guard.http_port === "number" ? guard.http_port : null };
}
