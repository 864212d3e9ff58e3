/** One layer in a process of its own: `node one-layer.cjs '{"layer": …}'`. The result is the last line of standard output. */
import { type Effort, prove } from "./layer";
import { layerOf } from "./layers";

const { layer, ...effort } = JSON.parse(process.argv[2]!) as Effort & { layer: string };

prove(layerOf(layer), effort).then(
  // A layer may have left a timer or a socket behind; it has nothing more to say.
  (result) => process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0)),
  (error: unknown) => {
    process.stderr.write(`${layer}: ${error instanceof Error ? (error.stack ?? error.message) : error}\n`);
    process.exit(1);
  },
);
