import { orThrow } from "../errors/cotenant-error";
import { fileKey, type LeaseKey } from "../kernel/keys";
import { isRefusal } from "../kernel/refusal";
import { type FoldingNames, gitPath } from "./paths";

/** What a lease on the path would be called; null for what cannot be leased. */
export function keyOf({ repository }: { readonly repository: FoldingNames }, path: string): LeaseKey | null {
  const canonical = gitPath(repository, path);
  const key = isRefusal(canonical) ? canonical : fileKey(canonical);
  return isRefusal(key) ? null : key;
}

/**
 * What rules a path, whatever its name is. One that cannot be leased itself (with a control character in it, no Unicode) is
 * still in its directories: it counts as some file in the innermost of them that can be leased.
 */
export function rulingKey(at: { readonly repository: FoldingNames }, path: string): LeaseKey {
  const own = keyOf(at, path);
  if (own !== null) return own;
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
    const inside = keyOf(at, `${path.slice(0, end)}/${UNNAMEABLE}`);
    if (inside !== null) return inside;
  }
  return orThrow(fileKey(UNNAMEABLE));
}

/** Stands for a name that no lease can have. */
const UNNAMEABLE = "\ufffd";
