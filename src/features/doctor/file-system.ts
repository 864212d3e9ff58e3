import type { Environment } from "../../identity/repository";
import type { Files } from "../../platform/platform";
import type { Layout } from "../../store/layout";

/** `network` names a network or pass-through file system; `type` is what the system calls it, where it says so. */
export async function fileSystemOf(
  files: Files,
  path: string,
): Promise<{ network: string | null; type: string | null }> {
  return { network: await files.networkFileSystem(path), type: await mountType(files, path) };
}

/** By the longest mount point above it, as Linux lists them; the last mounted of equals is the one on top. */
async function mountType(files: Files, path: string): Promise<string | null> {
  const bytes = await files.readFile("/proc/self/mounts");
  let best = { point: "", type: null as string | null };
  for (const line of new TextDecoder().decode(bytes ?? new Uint8Array()).split("\n")) {
    const [, point = "", type = ""] = line.split(" ");
    // Spaces and the like are in octal there.
    const plain = point.replace(/\\(\d{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    const isAbove = plain === path || path.startsWith(plain.endsWith("/") ? plain : `${plain}/`);
    if (plain !== "" && isAbove && plain.length >= best.point.length) best = { point: plain, type };
  }
  return best.type;
}

export async function isNetworkAllowed(files: Files, layout: Layout, env: Environment): Promise<boolean> {
  if (/^(1|true|yes|on)$/i.test(env["COTENANT_ALLOW_NETWORK_FS"] ?? "")) return true;
  return (await files.stat(layout.allowNetwork)) !== null;
}
