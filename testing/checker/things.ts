/** What can be leased in the scratch repository. A thing is what can be written to: it has a witness file. */
export interface Ground {
  readonly issues: readonly string[];
  readonly files: readonly string[];
  readonly directories: readonly string[];
  readonly resources: readonly string[];
}

export function thingsOf(ground: Ground): string[] {
  return [...ground.issues, ...ground.files, ...ground.resources];
}

/** A directory's lease is a right to each file below it, and is witnessed on each of them. */
export function thingsUnder(key: string, ground: Ground): string[] {
  if (!key.startsWith("dir:")) return [key];
  const directory = key.slice("dir:".length);
  return ground.files.filter((file) => directory === "." || file.startsWith(`file:${directory}/`));
}

/** Everything there is, in one operation: granted only when nobody blocks anything. */
export function everything(ground: Ground): string[] {
  return ["dir:.", ...ground.issues, ...ground.resources];
}
