import { thisMachine } from "../platform/node/this-machine";
import { failAside, runCommandLine } from "./program";
import { isTty, nodeTerminal } from "./terminal/terminal";

const args = process.argv.slice(2);
const terminal = nodeTerminal();
const surroundings = () => ({ ...thisMachine(), isTerminal: terminal.isTerminal || isTty(0) });

process.on("unhandledRejection", (error) => process.exit(failAside(error, args, terminal)));
// Everything is written by then, and a wait for a busy mutex, which cannot be called off, must not keep us.
runCommandLine(args, { terminal, surroundings }).then((status) => process.exit(status));
