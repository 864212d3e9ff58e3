import { jsonObject } from "../../codec/json";
import { CotenantError, usageError } from "../../errors/cotenant-error";
import { makeUlid, type Ulid, ulidIn } from "../../kernel/ids";
import type { Platform } from "../../platform/platform";
import { IssueFolder } from "./folder";
import type { IssueReader } from "./reader";
import type { FoundIssue } from "./resolve";
import { COMMENTS } from "./stamps";

export interface Comment {
  readonly id: Ulid;
  readonly at: string;
  readonly by: string;
  readonly text: string;
}

const MAX_COMMENT = 64 << 10;

export function newComment(platform: Pick<Platform, "clock" | "random">, by: string, text: string): Comment {
  if (text.trim() === "") throw usageError("a comment needs a text", "add --text <text>");
  if (new TextEncoder().encode(text).length > MAX_COMMENT)
    throw new CotenantError("E_LIMIT", `a comment has at most ${MAX_COMMENT} bytes`, {
      hint: "put the rest into a file beside the code, and name it here ('cotenant doc add')",
    });
  const nowMs = platform.clock.wallMs();
  return { id: makeUlid(nowMs, platform.random.bytes(10)), at: new Date(nowMs).toISOString(), by, text };
}

export function encodeComment(comment: Comment): string {
  return `${JSON.stringify(comment)}\n`;
}

/** Everybody's, wherever they wrote it: of all copies that can be seen, oldest first, each once. */
export async function readComments(reader: IssueReader, found: FoundIssue): Promise<Comment[]> {
  const { sources, here } = reader;
  const roots = new Set([here.root, sources.mainRoot, found.copy.root].filter((root) => root !== null));
  const comments = new Map<Ulid, Comment>();
  for (const root of roots)
    for (const comment of decodeComments(
      await new IssueFolder(sources.platform, root).lines(found.id, COMMENTS),
    ))
      comments.set(comment.id, comment);
  return [...comments.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Lines that are none are left out: somebody's editor wrote them, or half of them. */
export function decodeComments(text: string): Comment[] {
  const comments: Comment[] = [];
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const comment = decodeComment(line);
    if (comment !== null) comments.push(comment);
  }
  return comments;
}

function decodeComment(line: string): Comment | null {
  const w = jsonObject(line);
  const id = ulidIn(w?.["id"]);
  if (w === null || id === null || typeof w["text"] !== "string") return null;
  return { id, at: String(w["at"] ?? ""), by: String(w["by"] ?? ""), text: w["text"] };
}
