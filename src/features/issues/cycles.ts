/** Who depends on whom, by id. */
export type Edges = ReadonlyMap<string, readonly string[]>;

/** A circle among them, each waiting for the next and the last for the first, or null. Linear, and not recursive. */
export function cycleIn(edges: Edges): string[] | null {
  const done = new Set<string>();
  for (const start of edges.keys()) {
    const circle = done.has(start) ? null : cycleFrom(edges, start, done);
    if (circle !== null) return circle;
  }
  return null;
}

function cycleFrom(edges: Edges, start: string, done: Set<string>): string[] | null {
  const path: string[] = [start];
  const onPath = new Set(path);
  const next = [[...(edges.get(start) ?? [])]];
  while (path.length > 0) {
    const to = next.at(-1)!.pop();
    if (to === undefined) {
      const left = path.pop()!;
      onPath.delete(left);
      done.add(left);
      next.pop();
    } else if (onPath.has(to)) return [...path.slice(path.indexOf(to)), to];
    else if (!done.has(to)) {
      path.push(to);
      onPath.add(to);
      next.push([...(edges.get(to) ?? [])]);
    }
  }
  return null;
}

/** The shortest way from one to another along dependencies, or null. `of` may read them as it goes. */
export async function wayTo(
  from: string,
  to: string,
  of: (id: string) => Promise<readonly string[]>,
): Promise<string[] | null> {
  const before = new Map<string, string | null>([[from, null]]);
  const queue = [from];
  for (let at = 0; at < queue.length; at++) {
    const id = queue[at]!;
    if (id === to) return wayBack(before, to);
    for (const next of await of(id)) {
      if (before.has(next)) continue;
      before.set(next, id);
      queue.push(next);
    }
  }
  return null;
}

function wayBack(before: ReadonlyMap<string, string | null>, to: string): string[] {
  const way: string[] = [];
  for (let id: string | null | undefined = to; id != null; id = before.get(id)) way.unshift(id);
  return way;
}
