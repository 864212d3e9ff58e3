/**
 * A daemon of the same build as the workers: `node process.cjs <repository>`. Says on standard output that it is there, and from then on
 * how much it was asked. Over a channel, if it has one, it says how much memory it uses.
 */
import { thisBuild } from "../../../src/daemon/build";
import { Daemon } from "../../../src/daemon/daemon";
import { thisMachine } from "../../../src/platform/node/this-machine";

async function main(): Promise<void> {
  const daemon = await Daemon.start({
    surroundings: () => ({ ...thisMachine(), cwd: process.argv[2]!, isTerminal: false }),
    version: "0.0.0",
    program: process.argv[1]!,
    build: thisBuild(),
    buildNow: thisBuild,
    idleSecs: null,
    relaunch: null,
  });
  if (daemon === null) throw new Error("another daemon is running");
  process.stdout.write("there\n");
  setInterval(async () => process.stdout.write(`${(await daemon.status()).requests}\n`), 20).unref();
  // For whoever has started it with a channel, and with `--expose-gc`.
  process.on("message", () => {
    (globalThis as { gc?: () => void }).gc?.();
    process.send?.(process.memoryUsage());
  });
  process.stdin.on("end", () => daemon.stop("told to"));
  process.stdin.resume();
  await daemon.ended();
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`${(error as Error).stack}\n`);
    process.exit(1);
  },
);
