import type { Files } from "./platform";

/** In place and not synced: for what may be lost. A reader that comes in the middle finds something that it cannot read. */
export async function overwriteFile(files: Files, path: string, text: string, mode: number): Promise<void> {
  const bytes = new TextEncoder().encode(text);
  const fd = await files.open(path, "update-or-create", mode);
  try {
    for (let at = 0; at < bytes.length; ) at += await files.writeAt(fd, bytes.subarray(at), at);
    await files.truncate(fd, bytes.length);
  } finally {
    await files.close(fd);
  }
}
