import type { Surroundings } from "../../../coordinator/workspace";
import { CotenantError, fileFailure } from "../../../errors/cotenant-error";
import { resolveFrom } from "../../../identity/path-text";
import { printable } from "../../../kernel/ids";

export const MOST_BYTES = 64 << 20;

/** The text of a file that a command line names. */
export async function contentOf({ platform, cwd }: Surroundings, name: string): Promise<string> {
  try {
    const bytes = await platform.files.readFile(resolveFrom(cwd, name));
    if (bytes === null)
      throw new CotenantError("E_NOT_FOUND", `there is no file ${printable(name)}`, {
        hint: "check its name, and the directory that you are in",
      });
    if (bytes.length > MOST_BYTES)
      throw new CotenantError("E_LIMIT", `${printable(name)} is larger than 64 MiB`);
    return new TextDecoder().decode(bytes);
  } catch (error) {
    throw fileFailure(error, "reading the issues", name);
  }
}
