import { type Effort, type Layer, prove } from "./layer";

/**
 * Runs one layer in this process: `node <program> '{"layer": …}'`; without an argument, says what layers there are.
 * What it has to say is one line of JSON, the last of standard output.
 */
export function serveLayers(layers: readonly Layer[]): void {
  serve(layers, process.argv[2]).catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : error}\n`);
    process.exit(1);
  });
}

async function serve(layers: readonly Layer[], argument: string | undefined): Promise<void> {
  if (argument === undefined)
    return say(
      layers.map(({ name, unit, inVerify, share, isFirst = false, isOptIn = false }) => ({
        name,
        unit,
        inVerify,
        share,
        isFirst,
        isOptIn,
      })),
    );
  const { layer: wanted, ...effort } = JSON.parse(argument) as Effort & { layer: string };
  const layer = layers.find(({ name }) => name === wanted);
  if (layer === undefined)
    throw new Error(`no layer "${wanted}"; there are ${layers.map(({ name }) => name).join(", ")}`);
  say(await prove(layer, effort));
}

function say(answer: unknown): void {
  // A layer may have left a timer or a socket behind; it has nothing more to say.
  process.stdout.write(`${JSON.stringify(answer)}\n`, () => process.exit(0));
}
