import * as fs from "node:fs";

/** Linux's `f_type` of file systems whose locks or caches other machines may not see. */
const LINUX_TYPES: Readonly<Record<number, string>> = {
  26985: "NFS",
  20859: "SMB",
  4283649346: "CIFS",
  4266872130: "SMB2",
  16914839: "9p", // also drvfs and the shares of most virtual machines
  1702057286: "FUSE", // also virtiofs
  1397113167: "AFS",
  12805120: "Ceph",
  198183888: "Lustre",
  2020557398: "vboxsf",
  3133910204: "vmhgfs",
  1937076805: "Coda",
  18225520: "GFS2",
  1952539503: "OCFS2",
};

const DARWIN_NETWORK = /^(nfs|smbfs|afpfs|webdav|ftp|osxfuse|macfuse|fuse|virtiofs|9p|acfs|prl_fs|vmhgfs)/i;

export function networkFileSystemName(path: string): string | null {
  if (process.platform === "linux") return LINUX_TYPES[fs.statfsSync(path).type >>> 0] ?? null;
  if (process.platform === "darwin") return darwinNetworkName(path);
  return path.startsWith("\\\\") || path.startsWith("//") ? "network share" : null;
}

/** macOS does not give stable type numbers; `mount` gives names. */
function darwinNetworkName(path: string): string | null {
  const { execFileSync } = require("node:child_process") as typeof import("node:child_process");
  const lines = execFileSync("/sbin/mount", { encoding: "utf8", timeout: 5_000 }).split("\n");
  let best = { point: "", type: "" };
  for (const line of lines) {
    const found = / on (.+) \(([^,)]+)/.exec(line);
    if (found === null) continue;
    const [, point, type] = found as unknown as [string, string, string];
    const holds = path === point || path.startsWith(point.endsWith("/") ? point : `${point}/`);
    if (holds && point.length > best.point.length) best = { point, type };
  }
  return DARWIN_NETWORK.test(best.type) ? best.type : null;
}
