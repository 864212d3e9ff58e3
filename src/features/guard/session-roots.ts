import { appendText } from "./small-files";
import type { Who } from "./who";
import type { World } from "./world";

/**
 * Worktrees in which a session holds something, though its harness stands elsewhere: when it stops or ends, they must hear
 * of it as well. Outside every repository, because there may be none where it stands.
 */
export async function rememberRoots(world: World, who: Who, roots: readonly string[]): Promise<void> {
  const file = fileOf(world, who);
  if (file === null) return;
  try {
    const known = await rememberedRoots(world, who);
    const fresh = roots.filter((root) => !known.includes(root) && !root.includes("\n"));
    if (fresh.length === 0 || known.length >= MOST) return;
    await makeDirectories(world, file.slice(0, file.lastIndexOf("/")));
    await appendText(world.platform.files, file, fresh.map((root) => `${root}\n`).join(""), 0o600);
  } catch {
    // Its leases there then end with its process.
  }
}

export async function rememberedRoots(world: World, who: Pick<Who, "sessionId">): Promise<string[]> {
  const file = fileOf(world, who);
  try {
    const bytes = file === null ? null : await world.platform.files.readFile(file);
    const lines = bytes === null ? [] : new TextDecoder().decode(bytes.subarray(0, LARGEST)).split("\n");
    return lines.filter((line) => line.startsWith("/")).slice(0, MOST);
  } catch {
    return [];
  }
}

export async function forgetRoots(world: World, who: Pick<Who, "sessionId">): Promise<void> {
  const file = fileOf(world, who);
  if (file !== null) await world.platform.files.unlink(file);
}

const MOST = 100;
const LARGEST = 1 << 20;

function fileOf({ env, home, platform }: World, { sessionId }: Pick<Who, "sessionId">): string | null {
  const xdg = env["XDG_STATE_HOME"];
  const base = xdg?.startsWith("/") ? xdg : home === null || home === "" ? null : `${home}/.local/state`;
  return base === null ? null : `${base}/cotenant/sessions/${platform.digest.sha256(sessionId).slice(0, 32)}`;
}

async function makeDirectories({ platform }: World, path: string): Promise<void> {
  for (let at = path.indexOf("/", 1); at !== -1; at = path.indexOf("/", at + 1)) {
    const part = path.slice(0, at);
    if ((await platform.files.stat(part)) === null) await platform.files.makeDirectory(part, 0o700);
  }
  await platform.files.makeDirectory(path, 0o700);
}
