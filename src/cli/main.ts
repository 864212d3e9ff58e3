import { thisMachine } from "../platform/node/this-machine";
import { runCommandLine } from "./program";
import { isTty, nodeTerminal } from "./terminal";

const terminal = nodeTerminal();
const surroundings = () => ({ ...thisMachine(), isTerminal: terminal.isTerminal || isTty(0) });

// Everything is written by then, and a wait for a busy mutex, which cannot be called off, must not keep us.
runCommandLine(process.argv.slice(2), { terminal, surroundings }).then((status) => process.exit(status));
