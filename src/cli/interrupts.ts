import type { Workspace } from "../coordinator/workspace";
import { CotenantError } from "../errors/cotenant-error";
import type { Context } from "./command";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * For claims that are shared between machines: a signal in the middle of an exchange takes back what was begun, says so, and
 * then ends this process as it would have done at once. Without a ledger nothing takes long enough.
 */
export async function interruptibly<T>(
  context: Context,
  { config }: Workspace,
  act: (interrupted: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  if (config.values["sync.ledger_branch"] === null) return act(undefined);
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
      context.terminal.err(`cotenant: ${error.message}\n`);
      listen(false);
      process.kill(process.pid, caught);
      // Until it arrives.
      await new Promise(() => {});
    }
    throw error;
  } finally {
    listen(false);
  }
}
