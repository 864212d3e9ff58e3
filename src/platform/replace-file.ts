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
  const putInPlace = await stageFile(platform, path, content, mode);
  await putInPlace();
}

/** The first half: written beside and synced. What it answers does the rest, which hardly can fail. */
export async function stageFile(
  platform: Platform,
  path: string,
  content: string | Uint8Array,
  mode: number,
): Promise<() => Promise<void>> {
  const { files, random } = platform;
  const suffix = Array.from(random.bytes(6), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const temporary = `${path}.new-${suffix}`;
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const orClear = async (act: () => Promise<void>) => {
    try {
      await act();
    } catch (error) {
      await files.unlink(temporary);
      throw error;
    }
  };
  const fd = await files.open(temporary, "create", mode);
  await orClear(async () => {
    try {
      for (let at = 0; at < bytes.length; ) at += await files.writeAt(fd, bytes.subarray(at), at);
      await files.sync(fd);
    } finally {
      await files.close(fd);
    }
  });
  return async () => {
    await orClear(async () => files.rename(temporary, path));
    await files.syncDirectory(path.slice(0, path.lastIndexOf("/")) || "/");
  };
}
