/**
 * Upper case first: letters with several lower-case forms (the Greek sigmas) then meet. It folds a little
 * more than some file systems do, which can only make two files share a key, never one file have two.
 */
export function foldPath(path: string, ignoreCase: boolean): string {
  let folded = path.normalize("NFC");
  if (!ignoreCase) return folded;
  for (let round = 0; round < 4; round++) {
    const next = folded.toUpperCase().toLowerCase().normalize("NFC");
    if (next === folded) break;
    folded = next;
  }
  return folded;
}
