import type { Descriptor, Files, Later } from "./platform";

/** A file that must not be there yet, with its content; `settle` makes sure of that, where it has to last. */
export async function writeNew(
  files: Files,
  path: string,
  content: string | Uint8Array,
  mode: number,
  settle?: (fd: Descriptor) => Later<void>,
): Promise<void> {
  const fd = await openNew(files, path, content, mode);
  try {
    await settle?.(fd);
  } finally {
    await files.close(fd);
  }
}

/** The same, for a caller who closes it. */
export async function openNew(
  files: Files,
  path: string,
  content: string | Uint8Array,
  mode: number,
): Promise<Descriptor> {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const fd = await files.open(path, "create", mode);
  try {
    for (let at = 0; at < bytes.length; ) at += await files.writeAt(fd, bytes.subarray(at), at);
    return fd;
  } catch (error) {
    await files.close(fd);
    throw error;
  }
}
