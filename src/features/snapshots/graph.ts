import type { Descriptor } from "./descriptor";

export interface GraphLine {
  readonly descriptor: Descriptor;
  readonly lanes: string;
}

/** Like `git log --graph`, newest first. Each snapshot has at most one parent, so lanes only ever meet: at a `/`. */
export function drawGraph(newestFirst: readonly Descriptor[]): GraphLine[] {
  const shown = new Set<string>(newestFirst.map(({ snapshot_id: id }) => id));
  /** The snapshot that each lane leads down to. */
  const lanes: string[] = [];
  return newestFirst.map((descriptor) => {
    const id: string = descriptor.snapshot_id;
    if (!lanes.includes(id)) lanes.push(id);
    const own = lanes.indexOf(id);
    const text = lanes.map((down, lane) => (lane === own ? "*" : down === id ? "/" : "|")).join(" ");
    const { parent } = descriptor;
    for (let lane = lanes.length - 1; lane >= 0; lane--) {
      if (lanes[lane] !== id) continue;
      if (lane === own && parent !== null && shown.has(parent)) lanes[lane] = parent;
      else lanes.splice(lane, 1);
    }
    return { descriptor, lanes: text };
  });
}
