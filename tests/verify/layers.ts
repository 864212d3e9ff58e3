import type { Layer } from "./layer";
import { models } from "./models/layer";
import { planted } from "./planted/layer";
import { properties } from "./properties/layer";

/** The whole programme, in the order of the table. */
export const LAYERS: readonly Layer[] = [models, properties, planted];

export function layerOf(name: string): Layer {
  const layer = LAYERS.find((candidate) => candidate.name === name);
  if (layer === undefined)
    throw new Error(`no layer "${name}"; there are ${LAYERS.map((candidate) => candidate.name).join(", ")}`);
  return layer;
}
