import * as fs from "node:fs";

/** Processes that have this very file open, of those that we may look at; null where the system does not tell. */
export function openBy(file: string): number[] | null {
  if (process.platform !== "linux") return null;
  const wanted = fs.statSync(file, { throwIfNoEntry: false });
  if (wanted === undefined) return [];
  const names = fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return names.map(Number).filter((pid) => hasOpen(pid, wanted));
}

function hasOpen(pid: number, { dev, ino }: fs.Stats): boolean {
  try {
    return fs.readdirSync(`/proc/${pid}/fd`).some((fd) => {
      const stat = fs.statSync(`/proc/${pid}/fd/${fd}`, { throwIfNoEntry: false });
      return stat?.dev === dev && stat.ino === ino;
    });
  } catch {
    // Somebody else's, or gone meanwhile.
    return false;
  }
}
