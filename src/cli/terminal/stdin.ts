import { limitError } from "../../errors/cotenant-error";

/** All of standard input, as text, up to so many bytes. */
export async function readStdin(most: number): Promise<string> {
  return Buffer.from(await readStdinBytes(most)).toString("utf8");
}

export async function readStdinBytes(most: number): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > most)
      throw limitError(`standard input has more than ${most} bytes`, "give less, in several calls");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
