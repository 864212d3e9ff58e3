import { CotenantError, usageError } from "../../errors/cotenant-error";
import type { Lease } from "../../kernel/lease";
import { type Trailers, trailerLines, whoLines, withoutTrailers } from "../hooks/trailers";

const LONGEST = 64 << 10;

/** What a person wrote, as a commit's message, without lines that only we may write. */
export function cleanMessage(text: string): string {
  const lines = withoutTrailers(text.replaceAll("\r\n", "\n"))
    .split("\n")
    .map((line) => line.trimEnd());
  const message = lines.join("\n").replace(/^\n+/, "").trimEnd();
  if (message === "") throw usageError("a commit needs a message", 'add --message "What it does"');
  if (message.includes("\0")) throw usageError("a message may not contain NUL", "take it out");
  if (message.length > LONGEST)
    throw new CotenantError("E_LIMIT", `the message is longer than ${LONGEST} characters`);
  return message;
}

/** The message with the trailers that say on which leases the commit rests. */
export function withTrailers(message: string, leases: readonly Lease[], trailers: Trailers): string {
  const named = leases.map(({ leaseId, fencingToken }) => ({ leaseId, token: fencingToken }));
  const said = trailerLines({ ...trailers, leases: named });
  const lines = said.length > 0 ? said : whoLines(trailers.agentId, trailers.worktreeId);
  return withLines(message, lines);
}

/** The message with these lines as its last paragraph, or at the end of the one that it has. */
export function withLines(message: string, lines: readonly string[]): string {
  return `${message}${endsInTrailers(message) ? "\n" : "\n\n"}${lines.join("\n")}\n`;
}

const TRAILER = /^[A-Za-z0-9-]{1,100}: \S/;

/** As Git sees it: a last paragraph, not the first, of nothing but trailers. */
function endsInTrailers(message: string): boolean {
  const at = message.lastIndexOf("\n\n");
  return (
    at !== -1 &&
    message
      .slice(at + 2)
      .split("\n")
      .every((line) => TRAILER.test(line))
  );
}
