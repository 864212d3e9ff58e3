import type { World } from "./world";

/** Beyond this, size and time must do. */
const LARGEST = 32 << 20;

/** What a file is like; null when it is not there. */
export async function fingerprint({ platform }: World, path: string): Promise<string | null> {
  const { files, digest } = platform;
  const stat = await files.stat(path);
  if (stat === null) return null;
  if (stat.kind !== "file" || stat.size > LARGEST) return `${stat.kind} ${stat.size} ${stat.mtimeMs}`;
  const bytes = await files.readFile(path);
  return bytes === null ? null : digest.sha256(bytes);
}
