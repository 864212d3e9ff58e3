/** What `program.ts` runs without a process; bundled once for all test files, because to load it as it is takes a second. */
export { runCommandLine } from "../../src/cli/program";
export { thisMachine } from "../../src/platform/node/this-machine";
export { wrongHintsIn } from "./hints";
