import { pauseOf } from "../../../coordinator/pausing";
import { pauseData, pauseText } from "../../../kernel/pause";
import { type Check, warning } from "../finding";

/** Before everything else: it is why nobody gets anything. */
export const pauseCheck: Check = {
  name: "pause",
  async look({ coordinator, hasStore }) {
    const pause = hasStore ? await pauseOf(coordinator) : null;
    if (pause === null) return [];
    return [warning(pauseText(pause), "when it is over, a person runs: cotenant resume", pauseData(pause))];
  },
};
