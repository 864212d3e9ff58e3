import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

/** Where a command is: on the PATH, or in one of the folders below a home; null where it is not. */
export function findProgram(
  command: string,
  places: readonly string[],
  { path, home }: { readonly path: string; readonly home: string | null },
): string | null {
  const folders = [
    // A relative one would mean another folder for whoever is started elsewhere.
    ...path.split(delimiter).filter(isAbsolute),
    ...(home === null ? [] : places.map((place) => join(home, place))),
  ];
  return folders.map((folder) => join(folder, command)).find(isExecutable) ?? null;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
