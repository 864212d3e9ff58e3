import { chmodSync } from "node:fs";
import { join } from "node:path";
import type { Layer, Task } from "../layer";
import { WRITING } from "./commands";
import { tryFull } from "./full";
import { tryQuota, tryReadOnly, tryRemoved, tryWithoutRights } from "./locked";
import { DiskRoom, programForAll } from "./room";

/** From nothing at all to enough for everything. */
const PAGES = [0, 1, 4];
const NAMES = [0, 2];
/** `npm test` tries every command on a disk with nothing left, and one of so many in the other states. */
const SAMPLE = 5;

/** Full and read-only disks: real ones, small, and every command that writes. */
export const disks: Layer = {
  name: "disks",
  unit: "trials",
  inTest: 1,
  inVerify: Number.MAX_SAFE_INTEGER,
  share: 0,
  mustMove: [
    ...WRITING.map(({ name }) => `refused: ${name}`),
    "refused for want of pages",
    "refused for want of names",
    "short writes",
    "done once there was room",
    "refused by a read-only disk",
    "refused without rights",
    "refused by a quota",
    "readers answered",
    "control plane removed under a waiter",
  ],
  prove,
};

async function prove(task: Task): Promise<void> {
  // A user without rights has to get at the program and at the disk.
  chmodSync(task.scratch, 0o755);
  const program = programForAll(join(task.scratch, "program"));
  const states = (all: readonly number[], index: number) =>
    task.triesAll || index % SAMPLE === 0 ? all : all.slice(0, 1);
  // In a sample as in the whole: only the time ends it.
  const isOn = () => {
    task.isCutShort ||= task.isTimeUp;
    return !task.isTimeUp;
  };
  const full = new DiskRoom(join(task.scratch, "full"), "size=8m", program);
  try {
    await full.prepare();
    for (const [index, writing] of WRITING.entries())
      for (const left of states(PAGES, index))
        if (isOn()) await tryFull(task, full, writing, { what: "pages", left });
    if (isOn()) tryReadOnly(task, full);
    if (isOn()) await tryRemoved(task, full, program);
  } finally {
    full.close();
  }
  const few = new DiskRoom(join(task.scratch, "few"), "size=8m,nr_inodes=1500", program);
  try {
    await few.prepare();
    for (const [index, writing] of WRITING.entries())
      for (const left of states(NAMES, index))
        if (isOn()) await tryFull(task, few, writing, { what: "names", left });
    if (isOn()) tryQuota(task, few);
    if (isOn()) tryWithoutRights(task, few);
  } finally {
    few.close();
  }
}
