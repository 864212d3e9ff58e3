import type { Parsed } from "../../../cli/grammar/command";
import { readStdinBytes } from "../../../cli/terminal/stdin";
import { CotenantError, usageError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import type { NamedChanges } from "../named-changes";

/** Whether to push, or where. */
export function pushFrom(parsed: Parsed): boolean | string {
  const remote = parsed.text("remote");
  if (parsed.has("push")) return remote ?? true;
  if (remote === undefined) return false;
  throw usageError("--remote says where to push, but --push is missing", "add --push");
}

const MOST_STDIN = 256 << 20;

export function namedChangesFrom(parsed: Parsed): NamedChanges {
  return {
    patches: parsed.texts("patch"),
    puts: parsed.texts("put").map((text) => {
      const [path, file] = pair(text, "--put", "<path>=<file>");
      return { path, file };
    }),
    deletes: parsed.texts("delete"),
    renames: parsed.texts("rename").map((text) => {
      const [from, to] = pair(text, "--rename", "<from>=<to>");
      return { from, to };
    }),
    fromWorktree: worktreePaths(parsed),
    list: parsed.text("changes"),
    readStdin: () => readStdinBytes(MOST_STDIN),
  };
}

/** `--from-worktree a b c`: the words that follow are paths as well. */
function worktreePaths(parsed: Parsed): readonly string[] {
  const named = parsed.texts("from-worktree");
  const [word] = parsed.words;
  if (named.length > 0 || word === undefined) return [...named, ...parsed.words];
  throw new CotenantError("E_USAGE", `'publish' does not know what to do with "${printable(word)}"`, {
    hint: `to publish it as it is in the working tree: --from-worktree ${printable(word)}`,
  });
}

function pair(text: string, flag: string, form: string): [string, string] {
  const at = text.indexOf("=");
  if (at > 0 && at < text.length - 1) return [text.slice(0, at), text.slice(at + 1)];
  throw usageError(`${flag} takes ${form}, not "${printable(text)}"`, "names with = in them go on --changes");
}
