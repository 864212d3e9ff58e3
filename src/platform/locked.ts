import type { Platform } from "./platform";

/** Whether some process has locked the file. One that is not there nobody has. */
export async function isLocked(
  { files, locks }: Pick<Platform, "files" | "locks">,
  path: string,
): Promise<boolean> {
  if ((await files.stat(path)) === null) return false;
  const fd = await files.open(path, "update", 0o600);
  try {
    return !(await locks.tryLock(fd));
  } finally {
    await files.close(fd);
  }
}
