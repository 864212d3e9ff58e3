import { nodePlatform } from "../../src/platform/node/node";
import type { Platform } from "../../src/platform/platform";

/** This machine, with a clock that the test can put forward. */
export function withMovableClock(): { platform: () => Platform; advance: (ms: number) => void } {
  let ahead = 0;
  const platform = () => {
    const { clock, ...rest } = nodePlatform();
    return {
      ...rest,
      clock: {
        wallMs: () => clock.wallMs() + ahead,
        monotonicMs: () => clock.monotonicMs() + ahead,
        clockId: () => clock.clockId(),
      },
    };
  };
  const advance = (ms: number) => {
    ahead += ms;
  };
  return { platform, advance };
}
