/** Shell sessions in documents: the commands, what they should answer, and whether they did. */

export interface ConsoleCommand {
  readonly line: number;
  readonly command: string;
  /** From a remark at its end (`# exits 1`); 0 without one. */
  readonly exit: number;
  /** What the document shows as its answer; empty when it shows none. */
  readonly answer: readonly string[];
}

export interface Ran {
  readonly exit: number;
  readonly answer: readonly string[];
}

/** Every fenced block of the language, with the line its content starts on. */
export function blocksOf(markdown: string, language: string): { line: number; text: string }[] {
  const fence = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm");
  return [...markdown.matchAll(fence)].map((found) => ({
    line: markdown.slice(0, found.index).split("\n").length + 1,
    text: found[1]!,
  }));
}

export function commandsOf(markdown: string): ConsoleCommand[] {
  const commands: { line: number; command: string; exit: number; answer: string[] }[] = [];
  for (const block of blocksOf(markdown, "console")) {
    block.text.split("\n").forEach((text, i) => {
      const line = block.line + i;
      if (text.startsWith("$ ")) {
        const exit = Number(/#\s*exits (\d+)\s*$/.exec(text)?.[1] ?? 0);
        commands.push({ line, command: text.slice(2), exit, answer: [] });
      } else if (text !== "") {
        const last = commands.at(-1);
        if (last === undefined) throw new Error(`line ${line}: an answer without a command`);
        last.answer.push(text);
      }
    });
  }
  return commands;
}

/** A short id that a document shows stands for the one that this run got. */
export function rename(text: string, names: ReadonlyMap<string, string>): string {
  return text.replace(/\b[0-9a-z]{4,16}\b/g, (word) => names.get(word) ?? word);
}

export function namesIn(shown: readonly string[], given: readonly string[]): [string, string][] {
  const created = (lines: readonly string[]) => /^created ([0-9a-z]{4,16}):/m.exec(lines.join("\n"))?.[1];
  const [inDocument, inRun] = [created(shown), created(given)];
  return inDocument === undefined || inRun === undefined ? [] : [[inDocument, inRun]];
}

/** Null when the answer is what the document shows; else what to tell whoever broke it. */
export function difference(shown: readonly string[], given: readonly string[]): string | null {
  if (shown.length === 0) return null;
  const pattern = shown.map((line) => (line === "…" ? "(?:.*\n)*?" : `${linePattern(line)}\n`)).join("");
  const text = given.map((line) => `${normal(line)}\n`).join("");
  if (new RegExp(`^${pattern}$`).test(text)) return null;
  return `the document shows:\n${shown.join("\n")}\nbut it answers:\n${given.join("\n")}`;
}

/** `…` inside a line stands for anything. */
function linePattern(line: string): string {
  const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return normal(line).split("…").map(escaped).join(".*");
}

/** What differs from run to run is made alike, and so is the width of columns. */
function normal(line: string): string {
  return line
    .replace(/\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b/g, "<id>")
    .replace(/\bwt:[0-9a-f]{8}\b/g, "<worktree>")
    .replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, "<time>")
    .replace(/\b\d+ s left\b/g, "<duration> left")
    .replace(/\b(?:\d+m\d\ds|\d+s)\b/g, "<duration>")
    .replace(/\s+/g, " ")
    .trim();
}
