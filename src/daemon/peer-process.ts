import * as fs from "node:fs";

/**
 * Whose end of a loopback connection it is, by its port; null where that cannot be told, which is everywhere but on Linux. Looks at
 * every process of ours: for the first event of a session that nobody has heard of.
 */
export function peerProcess(peerPort: number, ownPort: number): number | null {
  if (process.platform !== "linux") return null;
  try {
    const inode = inodeOf(peerPort, ownPort);
    return inode === null ? null : ownerOf(`socket:[${inode}]`);
  } catch {
    return null;
  }
}

/** As in proc(5): local and remote address in hexadecimal, and in the tenth field the socket's inode. */
function inodeOf(peerPort: number, ownPort: number): string | null {
  const end = (port: number) => `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const [local, remote] = [end(peerPort), end(ownPort)];
  for (const line of fs.readFileSync("/proc/net/tcp", "latin1").split("\n").slice(1)) {
    const fields = line.trim().split(/\s+/);
    if (fields[1] === local && fields[2] === remote) return fields[9] ?? null;
  }
  return null;
}

function ownerOf(socket: string): number | null {
  for (const name of fs.readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      for (const fd of fs.readdirSync(`/proc/${name}/fd`))
        if (fs.readlinkSync(`/proc/${name}/fd/${fd}`) === socket) return Number(name);
    } catch {
      // Somebody else's, or gone meanwhile.
    }
  }
  return null;
}

/** What a process was started with; null where that cannot be read. */
export function environmentOf(pid: number): Record<string, string> | null {
  try {
    const env: Record<string, string> = Object.create(null);
    for (const entry of fs.readFileSync(`/proc/${pid}/environ`, "utf8").split("\0")) {
      const at = entry.indexOf("=");
      if (at > 0) env[entry.slice(0, at)] = entry.slice(at + 1);
    }
    return env;
  } catch {
    return null;
  }
}
