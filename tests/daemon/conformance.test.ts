import { describeCoordinator } from "../coordinator/conformance";
import { withMovableClock } from "../support/movable-clock";
import { StageDaemon } from "./stage";

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describeCoordinator("the daemon's client", (policy) => {
  const { platform, advance } = withMovableClock();
  const daemon = new StageDaemon(platform());
  return {
    open: (agent, options = {}) => {
      const { party, coordinator } = daemon.client(agent, { ...options, policy });
      return { ...party, coordinator };
    },
    pass: async (ms) => {
      await pause(Math.min(ms, 60));
      advance(ms);
    },
    close: () => daemon.close(),
  };
});
