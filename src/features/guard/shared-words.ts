import { printable } from "../../kernel/ids";
import { nameOf } from "../../kernel/keys";
import type { Lease } from "../../kernel/lease";
import type { StashEntry } from "./shared-checkout";
import type { GitUse } from "./shell/arguments";
import type { Words } from "./words";

/** What an agent is told whose command would move what others rely on. */

export interface Sharing {
  readonly use: GitUse;
  readonly others: readonly Lease[];
  /** Of the worktree that is moved. */
  readonly root: string;
  /** The directory that commands have to name; null where the agent stands there. */
  readonly from: string | null;
  /** Whether it cannot be told where the command would run. */
  readonly isPlaceGuessed: boolean;
  /** For a worktree of one's own; null where none can be made. */
  readonly branch: string | null;
  readonly base: string | null;
}

export function sharedByOthers({ use, others, root, from, isPlaceGuessed, branch, base }: Sharing): Words {
  const said = printable(use.command, 80);
  const isHere = from === null && use.which === null;
  const create = [
    "cotenant worktree create",
    quoted(branch ?? ""),
    ...(base === null || printable(base, 200) !== base ? [] : ["--base", quoted(base)]),
  ];
  return refusal(use, others, root, [
    `cotenant: \`${said}\` moves what everybody in ${isHere ? "this checkout" : printable(root, 300)} shares (HEAD, index, stash, files), and ${workers(others)} ${isHere ? "here" : "there"}. Nothing was run.`,
    ...(isPlaceGuessed
      ? [
          "Where it would run cannot be told. If it is meant for another repository, name it: git -C <directory> …",
        ]
      : []),
    ...(branch === null
      ? []
      : [`Work in a worktree of your own instead: ${runFrom(from, create.join(" "))}`]),
    `Your own files alone you can commit (${gitIn(from)} commit -- <path>) or undo (${gitIn(from)} restore -- <path>) ${from === null ? "here" : "there"}.`,
  ]);
}

export function worktreeOfOthers(
  use: GitUse,
  others: readonly Lease[],
  { root, from }: Pick<Sharing, "root" | "from">,
): Words {
  const said = printable(use.command, 80);
  const there = printable(root, 300);
  const what =
    use.which === null
      ? `cannot tell which worktree \`${said}\` takes away, and in ${there} ${workers(others)}`
      : `\`${said}\` takes ${there} away, and ${workers(others)} there`;
  return refusal(use, others, root, [
    `cotenant: ${what}. Nothing was run.`,
    use.which === null
      ? "Name the worktree."
      : `When they have finished: ${runFrom(from, `cotenant worktree remove ${quoted(root)}`)}, which keeps what is not committed.`,
  ]);
}

export function stashOfOthers(
  use: GitUse,
  foreign: readonly StashEntry[],
  others: readonly Lease[],
  { branch, from }: Pick<Sharing, "branch" | "from">,
): Words {
  const [first] = foreign;
  const name = `stash@{${first!.at}}`;
  const more = foreign.length > 1 ? ` and ${foreign.length - 1} more` : "";
  return refusal(use, others, null, [
    `cotenant: \`${printable(use.command, 80)}\` takes ${name} (${printable(first!.title, 80)})${more} away. The stash is one for all worktrees, it was not made on ${branch === null ? "a branch of yours" : printable(branch, 100)}, and ${workers(others)} in another worktree. Nothing was run.`,
    `To have its changes and leave it to whoever made it: ${gitIn(from)} stash apply '${name}'`,
  ]);
}

function refusal(
  { command }: GitUse,
  others: readonly Lease[],
  root: string | null,
  lines: readonly string[],
): Words {
  return {
    isHardStop: false,
    code: "E_LOCK_CONFLICT",
    data: {
      command: printable(command, 80),
      worktree_root: root,
      holders: others.slice(0, 20).map(({ agentId, key }) => ({ agent_id: agentId, key })),
    },
    reason: lines.join("\n"),
  };
}

const MOST_NAMED = 5;

/** `agent:a (a.txt, b.txt) works`. */
function workers(others: readonly Lease[]): string {
  const agents = [...new Set(others.map(({ agentId }) => agentId))];
  const shown = agents.slice(0, MOST_NAMED).map((agentId) => {
    const keys = others
      .filter((lease) => lease.agentId === agentId)
      .map(({ key }) => printable(nameOf(key), 100));
    return `${agentId} (${keys.slice(0, 3).join(", ")}${keys.length > 3 ? `, and ${keys.length - 3} more` : ""})`;
  });
  const more = agents.length > MOST_NAMED ? ` and ${agents.length - MOST_NAMED} more` : "";
  return `${shown.join(", ")}${more} ${agents.length === 1 ? "works" : "work"}`;
}

/** Without moving a shell that stays open. */
function runFrom(directory: string | null, command: string): string {
  return directory === null ? command : `(cd ${quoted(directory)} && ${command})`;
}

function gitIn(directory: string | null): string {
  return directory === null ? "git" : `git -C ${quoted(directory)}`;
}

const LONGEST_PATH = 4_096;

/** As a shell takes it for one word. */
function quoted(word: string): string {
  const text = printable(word, LONGEST_PATH);
  return /^[\w./@~^+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
