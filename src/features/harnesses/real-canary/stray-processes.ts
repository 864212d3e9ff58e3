import { readdirSync, readFileSync } from "node:fs";

/** Workers outlive their launcher, and background commands their shell. Their home tells whose they are. */
export function killAllWithHome(home: string): void {
  if (process.platform !== "linux") return;
  for (const name of readdirSync("/proc").filter((one) => /^\d+$/.test(one))) {
    try {
      const isOurs = readFileSync(`/proc/${name}/environ`, "utf8").split("\0").includes(`HOME=${home}`);
      if (isOurs) process.kill(Number(name), "SIGKILL");
    } catch {
      // It has ended, or is somebody else's.
    }
  }
}
