import { printable, type Ulid } from "../../kernel/ids";
import type { Comment } from "../issues/comments";
import type { Issue } from "../issues/model";

/** What an agent is told of its task. */
export interface PromptTask {
  readonly issue: Pick<Issue, "title" | "description" | "files" | "context"> & {
    readonly id: Ulid;
    readonly shortId: string;
    readonly labels: readonly string[];
  };
  readonly comments: readonly Comment[];
  readonly gates: readonly {
    readonly key: string;
    /** Null where the gate is not defined here. */
    readonly kind: string | null;
    readonly command: string | null;
  }[];
  readonly branch: string;
  readonly target: string;
  readonly worktree: string;
  readonly attempt: number;
  readonly ports: readonly [number, number];
  /** Why the attempt before this one failed, and the end of what was printed then. */
  readonly earlier: { readonly why: string; readonly output: string } | null;
  /** Whether the branch has commits of an earlier attempt or run. */
  readonly hasWork: boolean;
  /** Whether uncommitted changes are committed for the agent. */
  readonly commits: boolean;
}

/** Some harnesses take it as one argument, which has at most 128 KiB. */
const LONGEST_PROMPT = 100_000;
const LONGEST_DESCRIPTION = 30_000;
const LONGEST_COMMENT = 4_000;
const MOST_COMMENTS = 20;
const LONGEST_OUTPUT = 6_000;

/**
 * The task in words. Whoever may write issues has written parts of it: those are set off and labelled, so that no line of them
 * passes for one of ours.
 */
export function promptFor(task: PromptTask): string {
  const { issue } = task;
  const parts = [
    `You work on one issue of this repository: ${printable(issue.shortId)}, "${printable(issue.title, 300)}".`,
    quoted("The issue's description, as its author wrote it", issue.description, LONGEST_DESCRIPTION),
    issue.labels.length === 0 ? "" : `Labels: ${issue.labels.map((label) => printable(label)).join(", ")}`,
    issue.files.length === 0
      ? ""
      : `Files that it is expected to change: ${issue.files.map((path) => printable(path, 300)).join(", ")}`,
    contextOf(issue.context),
    commentsOf(task.comments),
    howToWork(task),
    earlierOf(task),
  ];
  return `${parts
    .filter((part) => part !== "")
    .join("\n\n")
    .slice(0, LONGEST_PROMPT)}\n`;
}

function howToWork(task: PromptTask): string {
  const { issue, branch, target, worktree, gates, ports, commits } = task;
  const automated = gates.filter(({ kind, command }) => kind === "automated" && command !== null);
  const lines = [
    `Your worktree is ${printable(worktree, 500)}. Branch ${printable(branch, 200)} is checked out there, made from ${printable(target, 200)}. Stay in it, and on that branch.`,
    `The issue is claimed for you, and the claim is renewed while you work. Do not claim, release or close it: that happens when you are done.`,
    commits
      ? "Commit your work as you like; what you leave uncommitted is committed for you."
      : "Commit your work: what you leave uncommitted does not count.",
    "Push nothing, and leave other branches alone.",
    automated.length === 0
      ? ""
      : `It has to pass: ${automated.map(({ key, command }) => `${printable(key)} (${printable(command ?? "", 300)})`).join(", ")}.`,
    `Servers that you start may use the ports ${ports[0]} to ${ports[1]}.`,
    "Nobody can answer questions. If you cannot do it, say why and end with a status other than 0 where you can.",
    `Other agents work on other issues at the same time. A file that one of them holds is refused with its name: work on something else first, then try again. 'cotenant issue show ${printable(issue.shortId)}' shows the issue again.`,
  ];
  return ["How to work:", ...lines.filter((line) => line !== "").map((line) => `- ${line}`)].join("\n");
}

function contextOf(context: Readonly<Record<string, string>>): string {
  const entries = Object.entries(context);
  if (entries.length === 0) return "";
  const text = entries.map(([name, value]) => `${name}: ${value}`).join("\n");
  return quoted("More about it, as its author wrote it", text, LONGEST_COMMENT);
}

function commentsOf(comments: readonly Comment[]): string {
  return comments
    .slice(-MOST_COMMENTS)
    .map(({ at, by, text }) =>
      quoted(`A comment by ${printable(by)}, ${printable(at, 40)}`, text, LONGEST_COMMENT),
    )
    .filter((part) => part !== "")
    .join("\n\n");
}

function earlierOf({ attempt, earlier, hasWork }: PromptTask): string {
  const begun = hasWork
    ? "Somebody has worked on it before: look at the commits on the branch first, and go on from there."
    : "";
  if (earlier === null) return begun;
  const failed = `This is attempt ${attempt}. The one before failed: ${printable(earlier.why, 500)}.`;
  return [begun, failed, quoted("The end of what was printed then", earlier.output, LONGEST_OUTPUT, "end")]
    .filter((part) => part !== "")
    .join("\n\n");
}

/** Somebody else's text: labelled, each line set off, and of limited length. */
function quoted(label: string, text: string, most: number, keep: "start" | "end" = "start"): string {
  if (text.trim() === "") return "";
  const cut = keep === "start" ? text.slice(0, most) : text.slice(-most);
  const lines = cut
    .replace(/\r\n?/g, "\n")
    .trim()
    .split("\n")
    .map((line) => `> ${printable(line.replaceAll("\t", "    "), most)}`);
  return [`${label}${text.length > most ? " (cut)" : ""}:`, ...lines].join("\n");
}
