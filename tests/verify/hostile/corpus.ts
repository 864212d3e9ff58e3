import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../bundle";

/** One input of a corpus, as text and as the bytes that stand in a file. */
export interface Sample {
  readonly line: number;
  readonly text: string;
  readonly bytes: Uint8Array;
}

/** testing/corpora/README.md says how inputs are written down. */
export function corpus(name: string): Sample[] {
  const samples: Sample[] = [];
  for (const [at, line] of readFileSync(join(ROOT, "testing/corpora", name), "utf8")
    .split("\n")
    .entries()) {
    if (line === "" || line.startsWith("#")) continue;
    const bytes = bytesOf(line);
    samples.push({ line: at + 1, text: textOf(line), bytes });
  }
  if (samples.length === 0) throw new Error(`${name} is empty`);
  return samples;
}

const ESCAPE = /\\(?:u\{([0-9a-f]+)\}|x([0-9a-f]{2})|\{([^{}]*)\*(\d+)\}|([nrt\\#]))/g;
const PLAIN: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", "\\": "\\", "#": "#" };

function textOf(line: string): string {
  return line.replace(ESCAPE, (_, code, byte, repeated, times, plain) => {
    if (code !== undefined) return character(Number.parseInt(code, 16));
    if (byte !== undefined) return String.fromCharCode(Number.parseInt(byte, 16));
    return repeated !== undefined ? textOf(repeated).repeat(Number(times)) : PLAIN[plain]!;
  });
}

/** Half of a surrogate pair is a character too, as far as JavaScript is concerned. */
function character(code: number): string {
  return code >= 0xd800 && code < 0xe000 ? String.fromCharCode(code) : String.fromCodePoint(code);
}

function bytesOf(line: string): Uint8Array {
  const parts = line.split(/(\\x[0-9a-f]{2})/);
  return Uint8Array.from(
    Buffer.concat(
      parts.map((part) =>
        /^\\x[0-9a-f]{2}$/.test(part) ? Buffer.from(part.slice(2), "hex") : Buffer.from(textOf(part), "utf8"),
      ),
    ),
  );
}
