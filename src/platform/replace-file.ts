import { freshSuffix } from "./hex";
import type { Platform } from "./platform";
import { writeNew } from "./write-new";

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
  const temporary = `${path}.new-${freshSuffix(random)}`;
  const orClear = async (act: () => Promise<void>) => {
    try {
      await act();
    } catch (error) {
      await files.unlink(temporary);
      throw error;
    }
  };
  await orClear(() => writeNew(files, temporary, content, mode, (fd) => files.sync(fd)));
  return async () => {
    await orClear(async () => files.rename(temporary, path));
    await files.syncDirectory(path.slice(0, path.lastIndexOf("/")) || "/");
  };
}
