import { rmSync } from "node:fs";
import { join } from "node:path";
import { nodePlatform } from "../../../src/platform/node/node";
import type { Platform } from "../../../src/platform/platform";
import { judge } from "../hostile/whole-lines";
import type { Task } from "../layer";
import type { Writing } from "./commands";
import { type DiskRoom, misbehaviour, PAGE, type Said } from "./room";

/** How the disk is made full, and what of it is left. */
export interface Shortage {
  readonly what: "pages" | "names";
  readonly left: number;
}

let trials = 0;

/** One command on a disk with so much left: it is done, or refused and undone; and goes on when there is room again. */
export async function tryFull(
  task: Task,
  room: DiskRoom,
  writing: Writing,
  shortage: Shortage,
): Promise<void> {
  const number = String(++trials);
  const filledIn = (text: string) => text.replaceAll("%", number).replaceAll("ISSUE", room.issue);
  const line = filledIn(writing.line);
  for (const step of writing.before) await prepare(room, filledIn(step));
  const what = `${line} with ${shortage.left} ${shortage.what} left`;
  const broke = (why: string) =>
    task.broke(`${what}: ${why}`, `npm run verify -- --layer disks --seed ${task.seed}`);

  if (shortage.left === 0) await approachPageEnd(room, number);
  const before = await room.leases();
  const makeRoom = shortage.what === "pages" ? room.fill(shortage.left) : room.fillNames(shortage.left);
  let first: Said;
  try {
    // Every other time here, where a short write can be seen.
    first = trials % 2 === 0 ? room.run(line) : await room.runHere(line, counting(task));
    for (const why of await whileFull(room, first, before)) broke(why);
    task.count(first.status === 0 ? `done: ${writing.name}` : `refused: ${writing.name}`);
    if (first.status !== 0) task.count(`refused for want of ${shortage.what}`);
  } finally {
    makeRoom();
  }
  for (const why of await withRoom(task, room, writing, line, first)) broke(why);
  task.tried++;
}

/** What is left of the log's last page may hold a short line; it shall hold none. */
async function approachPageEnd(room: DiskRoom, number: string): Promise<void> {
  const size = () => room.logBytes().length;
  let line = 0;
  for (let tries = 0; tries < 10; tries++) {
    const left = PAGE - (size() % PAGE);
    if (left < 300) return;
    // As many of plain ones as fit; the last is filled up with a note.
    const note = line > 0 && left < line + 1_100 ? left - line - 150 : 0;
    const before = size();
    await room.runHere(
      `lock acquire z${number}-${tries}${note > 0 ? ` --note ${"n".repeat(Math.min(note, 1_000))}` : ""}`,
    );
    if (note <= 0) line = size() - before;
  }
}

async function prepare(room: DiskRoom, step: string): Promise<void> {
  if (step === "SLEEP") return new Promise((resolve) => setTimeout(resolve, 1_050));
  if (step.startsWith("FREE ")) {
    await room.runHere(`claim force-evict ${step.slice("FREE ".length)} --reason r --agent-id human:h`);
    return;
  }
  if (step === "FORGET-INIT") {
    // Not the issues: they are what other trials work on.
    for (const name of ["config.toml", ".gitignore", ".gitattributes"])
      rmSync(join(room.root, ".cotenant", name), { force: true });
    rmSync(join(room.root, ".git/cotenant-worktree.json"), { force: true });
    return;
  }
  const { status, words } = await room.runHere(step);
  if (status !== 0) throw new Error(`cannot prepare with "${step}": ${words}`);
}

/** Nothing acknowledged is lost, no half line stays, and readers answer. */
async function whileFull(room: DiskRoom, first: Said, before: readonly string[]): Promise<string[]> {
  const wrong: string[] = [];
  const bad = misbehaviour(first);
  if (bad !== null) wrong.push(bad);
  const mayRefuse = first.status === 0 || first.code === "E_DISK";
  if (!mayRefuse) wrong.push(`refused with ${first.code}: ${first.words}`);
  const log = room.logBytes();
  if (log.length > 0) {
    const { mustStop, whole } = judge(log, 0);
    const lines = log.toString("utf8").split("\n").length - 1;
    if (mustStop || whole.length !== lines || log.at(-1) !== 10) wrong.push("half a line stays in the log");
  }
  for (const look of ["lock status", "claim list"]) {
    const seen = await room.runHere(look);
    if (seen.status !== 0) wrong.push(`"${look}" fails meanwhile: ${seen.words}`);
  }
  if (first.status === 0) return wrong;
  const now = await room.leases();
  if (now.join() !== before.join()) wrong.push(`refused, and yet ${before.join()} became ${now.join()}`);
  return wrong;
}

async function withRoom(
  task: Task,
  room: DiskRoom,
  writing: Writing,
  line: string,
  first: Said,
): Promise<string[]> {
  const wrong: string[] = [];
  const again = await room.runHere(line);
  const mayDiffer = first.status === 0 ? (writing.againCodes ?? []) : [];
  if (again.status !== 0 && !mayDiffer.includes(again.code ?? ""))
    wrong.push(`still refused when there is room: ${again.words}`);
  else task.count("done once there was room");
  const recovered = await room.runHere("recover");
  if (recovered.status !== 0 || recovered.data["recovered"] !== false)
    wrong.push(`there was something to recover: ${recovered.words}`);
  return wrong;
}

/** This machine, with an eye on writes that take less than they were given. */
function counting(task: Task): Platform {
  const platform = nodePlatform();
  const files = Object.create(platform.files) as Platform["files"];
  files.append = async (fd, data) => {
    const taken = await platform.files.append(fd, data);
    if (taken < data.length) task.count("short writes");
    return taken;
  };
  return { ...platform, files };
}
