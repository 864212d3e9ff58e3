import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The lines of a corpus, without comments and blank lines, each split at tabs. */
export function corpus(name: string): string[][] {
  const text = readFileSync(join(import.meta.dirname, "../../testing/corpora", name), "utf8");
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  if (lines.length === 0) throw new Error(`${name} is empty`);
  return lines.map((line) => line.split("\t").map(unescaped));
}

function unescaped(text: string): string {
  return text.replace(/\\u\{([0-9a-f]+)\}/g, (_, hex: string) => {
    const code = Number.parseInt(hex, 16);
    return code >= 0xd800 && code < 0xe000 ? String.fromCharCode(code) : String.fromCodePoint(code);
  });
}
