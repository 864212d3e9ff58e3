import type { Layer } from "./layer";

/** The whole programme, in the order of the table. */
export const LAYERS: readonly Layer[] = [];

export function layerOf(name: string): Layer {
  const layer = LAYERS.find((candidate) => candidate.name === name);
  if (layer === undefined)
    throw new Error(`no layer "${name}"; there are ${LAYERS.map((candidate) => candidate.name).join(", ")}`);
  return layer;
}
