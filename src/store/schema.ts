import { CotenantError } from "../errors/cotenant-error";

/** The version of every file this code writes. A higher one is refused, untouched. */
export const SCHEMA_VERSION = 1;

/** Throws when the version is higher than this code knows. */
export function refuseNewer(version: unknown, what: string): void {
  if (typeof version !== "number" || version <= SCHEMA_VERSION) return;
  throw new CotenantError(
    "E_SCHEMA_NEWER",
    `${what} was written by a newer cotenant (schema ${version}, this one knows ${SCHEMA_VERSION})`,
    { data: { schema_version: version, known: SCHEMA_VERSION } },
  );
}

/**
 * For text that this code does not understand. A newer version may have changed everything about its lines
 * but that they are JSON and say which version they are: what says so must not be taken for damage.
 */
export function refuseNewerText(text: string, what: string): void {
  if (!text.startsWith("{")) return;
  try {
    const value = JSON.parse(text) as { readonly schema_version?: unknown };
    refuseNewer(value.schema_version, what);
  } catch (error) {
    if (error instanceof CotenantError) throw error;
  }
}
