import type { Platform } from "./platform";

/**
 * A whole new content under an old name, or nothing at all: written beside, synced, renamed, and the directory synced.
 * Several processes may do it at once; the last one to rename wins.
 */
export async function replaceFile(
  platform: Platform,
  path: string,
  content: string | Uint8Array,
  mode: number,
): Promise<void> {
  const { files, random } = platform;
  const suffix = Array.from(random.bytes(6), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const temporary = `${path}.new-${suffix}`;
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const fd = await files.open(temporary, "create", mode);
  try {
    try {
      for (let at = 0; at < bytes.length; ) at += await files.writeAt(fd, bytes.subarray(at), at);
      await files.sync(fd);
    } finally {
      await files.close(fd);
    }
    await files.rename(temporary, path);
  } catch (error) {
    await files.unlink(temporary);
    throw error;
  }
  await files.syncDirectory(path.slice(0, path.lastIndexOf("/")) || "/");
}
