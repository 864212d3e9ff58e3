import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, orThrow } from "../../errors/cotenant-error";
import { byKey, type LeaseRef } from "../../kernel/commands";
import { printable } from "../../kernel/ids";
import { dirKey, fileKey, KEY_KINDS, parseKey } from "../../kernel/keys";
import { shellWord } from "../../kernel/printing";
import { claimRef } from "../issues/claim-refs";

/** A lease of any kind: a claim as `claimRef` has it, or a key as tables show it. A lock's path is not guessed to be an issue. */
export async function leaseMeant(
  workspace: Workspace,
  typed: string,
  /** The verb of `claim` for which it is meant. */
  verb: "approve" | "force-evict" | "transfer",
): Promise<LeaseRef> {
  if (typed.startsWith("issue:")) return claimRef(workspace, typed.slice("issue:".length));
  if (KEY_KINDS.some((kind) => typed.startsWith(`${kind}:`))) return byKey(orThrow(parseKey(typed)));
  try {
    return await claimRef(workspace, typed);
  } catch (error) {
    const key = await lockedPath(workspace, typed);
    if (key === null) throw error;
    const name = shellWord(key);
    const commands = {
      approve: `cotenant claim approve ${name}`,
      "force-evict": `cotenant claim force-evict ${name} --reason <why>`,
      transfer: `cotenant claim transfer ${name} --to-agent <id> --reason <why>`,
    };
    throw new CotenantError(
      "E_USAGE",
      `"${printable(typed, 200)}" is no issue; a lock is named by its key, ${key}`,
      { hint: `run: ${commands[verb]}`, data: { key } },
    );
  }
}

/** The key of a file or directory that a word may name: one that is there, that is leased, or that looks like a path. */
async function lockedPath(workspace: Workspace, typed: string): Promise<string | null> {
  try {
    const { path, isDirectory } = await workspace.path(typed);
    const keys = [orThrow(fileKey(path)), orThrow(dirKey(path))];
    const held = await workspace.coordinator.find(keys.map(byKey));
    if (held[0] !== undefined) return held[0].lease.key;
    if (isDirectory === null && !/[./]/.test(typed)) return null;
    return isDirectory === true ? keys[1]! : keys[0]!;
  } catch {
    return null;
  }
}
