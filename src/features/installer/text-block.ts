/**
 * Lines of ours between two marks in somebody's text, where `#` begins a remark. The marks say all that it takes to undo
 * it, so that nothing needs to be remembered elsewhere.
 */
export interface Block {
  readonly before: string;
  readonly lines: readonly string[];
  readonly after: string;
  /** The file was not there before. */
  readonly isMade: boolean;
}

export function blockIn(text: string, name: string): Block | "damaged" | null {
  const begin = new RegExp(`^# >>> cotenant ${name}( \\(new file\\))? >>>.*$`, "m").exec(text);
  const endMark = `# <<< cotenant ${name} <<<`;
  if (begin === null) return text.includes(`# >>> cotenant ${name}`) ? "damaged" : null;
  const bodyAt = text.indexOf("\n", begin.index) + 1;
  const end = text.indexOf(endMark, begin.index);
  if (bodyAt === 0 || end === -1 || text[end - 1] !== "\n") return "damaged";
  const rest = text.slice(end + endMark.length);
  const lineEnd = /^\r?\n/.exec(rest)?.[0];
  if (lineEnd === undefined && rest !== "") return "damaged";
  const lines =
    end === bodyAt
      ? []
      : text
          .slice(bodyAt, end)
          .replace(/\r?\n$/, "")
          .split(/\r?\n/);
  const before = text.slice(0, begin.index);
  const isMade = begin[1] !== undefined;
  if (lineEnd !== undefined) return { before, lines, after: rest.slice(lineEnd.length), isMade };
  // The last line before ours had no end, so that ours has none instead.
  return { before: before.replace(/\r?\n$/, ""), lines, after: "", isMade };
}

/** The text with these lines of ours, in place of those it has, else at its end. Null stands for no file. */
export function withBlock(
  text: string | null,
  name: string,
  lines: readonly string[],
  remark: string,
): string {
  const old = text === null ? null : blockIn(text, name);
  const found = old === "damaged" ? null : old;
  const [before, after] = found === null ? [text ?? "", ""] : [found.before, found.after];
  const newline = before.includes("\r\n") || after.includes("\r\n") ? "\r\n" : "\n";
  const made = text === null || found?.isMade === true ? " (new file)" : "";
  const all = [`# >>> cotenant ${name}${made} >>> ${remark}`, ...lines, `# <<< cotenant ${name} <<<`];
  const isEndless = before !== "" && !before.endsWith("\n");
  if (isEndless && after === "") return before + newline + all.join(newline);
  return before + all.map((line) => line + newline).join("") + after;
}

/** Null where the file was ours alone. */
export function withoutBlock({ before, after, isMade }: Block): string | null {
  const rest = before + after;
  return isMade && rest === "" ? null : rest;
}
