/**
 * One layer in a process of its own: `node one-layer.cjs '{"layer": …}'`; without an argument, what layers there are.
 * What it has to say is one line of JSON, the last of standard output.
 */
import { type Effort, prove } from "./layer";
import { LAYERS, layerOf } from "./layers";

function say(answer: unknown): void {
  // A layer may have left a timer or a socket behind; it has nothing more to say.
  process.stdout.write(`${JSON.stringify(answer)}\n`, () => process.exit(0));
}

async function main(argument: string | undefined): Promise<void> {
  if (argument === undefined)
    return say(LAYERS.map(({ name, unit, inVerify, share }) => ({ name, unit, inVerify, share })));
  const { layer, ...effort } = JSON.parse(argument) as Effort & { layer: string };
  say(await prove(layerOf(layer), effort));
}

main(process.argv[2]).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : error}\n`);
  process.exit(1);
});
