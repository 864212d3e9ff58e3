/**
 * A file's bytes as text with one character per byte, and back. Other people's files are cut and joined so: whatever
 * their encoding is, not one byte of them changes.
 */
export function toBinary(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192)
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
}

export function fromBinary(text: string): Uint8Array {
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

/** Our own text, as bytes of the same form. */
export function binaryOf(text: string): string {
  return toBinary(new TextEncoder().encode(text));
}

/** For people. */
export function readable(binary: string): string {
  return new TextDecoder().decode(fromBinary(binary));
}
