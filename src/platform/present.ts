import type { Now } from "../kernel/time";
import type { Platform } from "./platform";

/** The instant at which the kernel decides. */
export function presentOn({ clock, processes }: Pick<Platform, "clock" | "processes">): Now {
  return {
    wallMs: clock.wallMs(),
    monotonicMs: clock.monotonicMs(),
    clockId: clock.clockId(),
    machineId: processes.machineId(),
  };
}
