import { CotenantError } from "../../errors/cotenant-error";
import { type ByteText, fromByteText, toByteText } from "../../git/byte-text";
import { printable } from "../../kernel/ids";
import type { Trees } from "../../platform/trees";
import type { Captured } from "./capture";
import { byBytes } from "./listing";
import type { Replacement } from "./replacement";
import type { SnapshotContext } from "./snapshot-context";

/**
 * What is not among the files of now, because Git ignores it, and lies where something is to go. Files and links give way:
 * `hidden` has to be in the precautionary snapshot, too. So do directories in which nothing stays; others cannot.
 */
export async function clearTheWay(
  { machine, place }: Pick<SnapshotContext, "machine" | "place">,
  plan: Replacement,
  { picture }: Pick<Captured, "picture">,
): Promise<{ readonly plan: Replacement; readonly hidden: readonly ByteText[] }> {
  const at = { trees: machine.trees, root: toByteText(place.root), going: new Set(plan.remove) };
  const known = new Set(picture.paths);
  const hidden: ByteText[] = [];
  const remove = [...plan.remove];
  const directories = new Set(plan.removeDirectories);
  for (const [path] of plan.makeDirectories) {
    const entry = await at.trees.look(`${at.root}/${path}`);
    if (entry === null || entry.kind === "directory" || at.going.has(path)) continue;
    hidden.push(path);
    remove.push(path);
  }
  for (const { path } of plan.write) {
    const entry = await at.trees.look(`${at.root}/${path}`);
    if (entry === null || (known.has(path) && entry.kind !== "directory")) continue;
    if (entry.kind === "directory")
      for (const directory of await emptied(at, path)) directories.add(directory);
    else hidden.push(path);
  }
  return {
    hidden,
    plan: {
      ...plan,
      remove: remove.sort(byBytes),
      // Those that are inside of others first.
      removeDirectories: [...directories].sort((a, b) => byBytes(b, a)),
    },
  };
}

/** A directory and all those in it, where everything else in them goes. */
async function emptied(
  at: { readonly trees: Trees; readonly root: ByteText; readonly going: ReadonlySet<ByteText> },
  directory: ByteText,
): Promise<ByteText[]> {
  const found = [directory];
  for (const { name, kind } of (await at.trees.list(`${at.root}/${directory}`)) ?? []) {
    const path = `${directory}/${name}`;
    if (kind === "directory") found.push(...(await emptied(at, path)));
    else if (!at.going.has(path)) throw blocked(path);
  }
  return found;
}

function blocked(path: ByteText): CotenantError {
  const name = printable(fromByteText(path), 300);
  return new CotenantError("E_POLICY", `${name} is in the way, and Git ignores it: it would be lost`, {
    hint: "move it out of the way, or restore into a new worktree (without --inplace)",
    data: { path: name },
  });
}
