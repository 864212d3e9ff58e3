import { constants } from "node:os";
import { CotenantError } from "../../errors/cotenant-error";
import type { Context } from "../grammar/command";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** A first process of a container is not ended by its own signal. */
const AT_LAST_MS = 1_000;

/**
 * For what takes long, a wait or an exchange with a remote: a signal takes back what was begun, says so, and then ends this
 * process as it would have done at once. What is done before the signal is noticed stays done.
 */
export async function interruptibly<T>(
  context: Context,
  takesLong: boolean,
  act: (interrupted: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  if (!takesLong) return act(undefined);
  const controller = new AbortController();
  let caught: NodeJS.Signals | null = null;
  const onSignal = (signal: NodeJS.Signals) => {
    caught ??= signal;
    controller.abort();
  };
  const listen = (isOn: boolean) => {
    for (const signal of SIGNALS) process[isOn ? "on" : "off"](signal, onSignal);
  };
  listen(true);
  try {
    return await act(controller.signal);
  } catch (error) {
    if (caught !== null && error instanceof CotenantError) {
      const { terminal, json } = context;
      if (json) terminal.out(`${JSON.stringify({ ok: false, error: error.toJSON() })}\n`);
      terminal.err(`cotenant: ${error.message}\n`);
      listen(false);
      await endBy(caught);
    }
    throw error;
  } finally {
    listen(false);
  }
}

function endBy(signal: NodeJS.Signals): Promise<never> {
  process.kill(process.pid, signal);
  setTimeout(() => process.exit(128 + constants.signals[signal]), AT_LAST_MS);
  return new Promise(() => {});
}
