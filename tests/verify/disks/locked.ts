import { execFileSync, spawn } from "node:child_process";
import { chmodSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Task } from "../layer";
import { READING, WRITING } from "./commands";
import { type DiskRoom, ENVIRONMENT, misbehaviour, saidIn } from "./room";

const report = (task: Task, what: string) =>
  task.broke(what, `npm run verify -- --layer disks --seed ${task.seed}`);

/** Every command where nothing can be written, and every reader there. */
export function tryReadOnly(task: Task, room: DiskRoom): void {
  execFileSync("mount", ["--bind", room.root, room.root]);
  execFileSync("mount", ["--options", "remount,ro,bind", room.root]);
  try {
    const before = pictureOf(room.root);
    for (const { name, line } of WRITING) {
      const said = room.run(line.replaceAll("%", "0").replaceAll("ISSUE", room.issue));
      // What is found out before anything is written, such as a lease that is not there, is no matter of the disk.
      const isRight = said.code === "E_DISK" || ["E_NOT_FOUND", "E_LOCK_NOT_HELD"].includes(said.code ?? "");
      if (misbehaviour(said) !== null || !(isRight || isNothingToDo(name, said.status)))
        report(task, `${line} on a read-only disk: ${said.words}`);
      if (said.code === "E_DISK") task.count("refused by a read-only disk");
      task.tried++;
    }
    readAll(task, room, "on a read-only disk", READING);
    if (pictureOf(room.root) !== before) report(task, "a read-only disk has changed");
  } finally {
    execFileSync("umount", ["--lazy", room.root]);
  }
}

/** What is there already needs no writing. */
function isNothingToDo(name: string, status: number): boolean {
  return status === 0 && ["init", "worktree init", "lock gc"].includes(name);
}

function readAll(
  task: Task,
  room: DiskRoom,
  where: string,
  commands: readonly string[],
  before: readonly string[] = [],
): void {
  for (const look of commands) {
    const seen = room.run(look, before);
    if (seen.status !== 0) report(task, `${look} ${where}: ${seen.words}`);
    else task.count("readers answered");
    task.tried++;
  }
}

const NOBODY = "65534";
const AS_NOBODY = ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups", "--"];

const PARTS = [
  "",
  "claims.jsonl",
  "index",
  "locks",
  "locks/claims.lock",
  "secrets",
  "secrets/agent%3aa",
  "secrets/agent%3aa/default.json",
];

/** A user without rights: each part of the control plane in turn is not for it to write. */
export function tryWithoutRights(task: Task, room: DiskRoom): void {
  execFileSync("chown", ["-R", `${NOBODY}:${NOBODY}`, room.mounted]);
  for (const path of PARTS) {
    const whole = join(room.control, path);
    const { mode } = statSync(whole);
    chmodSync(whole, mode & 0o555);
    try {
      const before = readFileSync(room.log, "utf8");
      const said = room.run(`lock acquire p${task.tried}`, AS_NOBODY);
      const bad = misbehaviour(said);
      // In a directory that cannot be written there may be all that is needed; and an index fails nobody.
      const isRight = said.code === "E_PERMISSION" || (said.status === 0 && statSync(whole).isDirectory());
      if (bad !== null || !isRight) report(task, `lock acquire with "${path}" not writable: ${said.words}`);
      if (said.status !== 0 && readFileSync(room.log, "utf8") !== before)
        report(task, "refused, and yet logged");
      if (said.code === "E_PERMISSION") task.count("refused without rights");
      task.tried++;
      readAll(task, room, `with "${path}" not writable`, ["status"], AS_NOBODY);
    } finally {
      chmodSync(whole, mode);
    }
  }
}

/** A quota says the same as a full disk. There is none to be had here: the system call is made to say so. */
export function tryQuota(task: Task, room: DiskRoom): void {
  for (const [calls, file] of [
    ["write,pwrite64", room.log],
    ["write,pwrite64", join(room.control, "secrets/agent%3aa/default.json")],
  ] as const) {
    const inject = [
      "strace",
      "-f",
      "-qq",
      "-o",
      "/dev/null",
      "-P",
      file,
      "-e",
      `inject=${calls}:error=EDQUOT`,
    ];
    const before = room.logBytes();
    const said = room.run(`lock acquire q${task.tried}`, inject);
    if (misbehaviour(said) !== null || said.code !== "E_DISK") report(task, `over quota: ${said.words}`);
    else task.count("refused by a quota");
    if (Buffer.compare(before, room.logBytes()) !== 0) report(task, "over quota, and yet logged");
    task.tried++;
  }
}

/** The control plane goes away under a process that waits in its queue. */
export async function tryRemoved(task: Task, room: DiskRoom, program: string): Promise<void> {
  await room.runHere("lock acquire held");
  const args = [
    program,
    "lock",
    "acquire",
    "held",
    "--wait",
    "--timeout",
    "3",
    "--agent-id",
    "agent:w",
    "--json",
  ];
  const child = spawn(process.execPath, args, { cwd: room.root, env: { ...ENVIRONMENT, HOME: room.home } });
  let [out, err] = ["", ""];
  child.stdout.on("data", (text) => {
    out += text;
  });
  child.stderr.on("data", (text) => {
    err += text;
  });
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  const hasTicket = () => readdirSync(join(room.control, "queue")).some((name) => name.endsWith(".json"));
  for (let looks = 0; looks < 200 && !hasTicket(); looks++)
    await new Promise((resolve) => setTimeout(resolve, 25));
  // At one stroke: the waiter may write at this very moment.
  renameSync(room.control, `${room.control}.gone`);
  rmSync(`${room.control}.gone`, { recursive: true, maxRetries: 10 });
  const said = saidIn((await ended) ?? -1, out, err);
  const bad = misbehaviour(said);
  if (bad !== null) report(task, `the control plane went away under a waiter: ${bad}`);
  else task.count("control plane removed under a waiter");
  // Nothing is left that could say there ever was a log: it starts over.
  const after = await room.runHere("lock acquire anew");
  if (after.status !== 0) report(task, `after the control plane was removed: ${after.words}`);
  task.tried++;
}

function pictureOf(root: string): string {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return `${path} ${entry.isFile() ? readFileSync(path, "base64") : ""}`;
    })
    .sort()
    .join("\n");
}
