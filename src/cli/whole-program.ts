import { thisMachine } from "../platform/node/this-machine";
import { runCommandLine } from "./program";
import { isTty, nodeTerminal } from "./terminal";

/** Any command line there is. */
export function runWholeProgram(args: readonly string[]): Promise<number> {
  const terminal = nodeTerminal();
  const surroundings = () => ({ ...thisMachine(), isTerminal: terminal.isTerminal || isTty(0) });
  return runCommandLine(args, { terminal, surroundings });
}
