import { throughGuardDoor } from "./guard-door";

/** Everything else is loaded only where a harness is not waiting for it. */
async function main(): Promise<number> {
  const args = process.argv.slice(2);
  const answered = args[0] === "guard" ? await throughGuardDoor(args) : null;
  if (answered !== null) return answered;
  const { runWholeProgram } = await import("./whole-program");
  return runWholeProgram(args);
}

// Everything is written by then, and a wait for a busy mutex, which cannot be called off, must not keep us.
main().then((status) => process.exit(status));
