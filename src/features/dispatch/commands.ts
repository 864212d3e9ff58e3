import type { Commands } from "../../platform/commands";

/**
 * Gates, checks and set-up, too, end with the run, and with its process: an interrupt of the dispatcher is for the run to answer, which
 * gives back what it holds.
 */
export function commandsOf(commands: Commands, stopped: AbortSignal): Commands {
  return {
    run: async (request) => {
      const end = new AbortController();
      const stop = () => end.abort();
      const signals = request.signal === undefined ? [stopped] : [stopped, request.signal];
      for (const signal of signals) {
        if (signal.aborted) stop();
        signal.addEventListener("abort", stop, { once: true });
      }
      try {
        return await commands.run({ ...request, signal: end.signal, leavesSignals: true, isBound: true });
      } finally {
        for (const signal of signals) signal.removeEventListener("abort", stop);
      }
    },
  };
}
