/**
 * Git's names are bytes, in no encoding. Text with one character per byte compares, sorts and concatenates as the bytes
 * do, so that also a name that is no Unicode comes out of a tree as it went in.
 */
export type ByteText = string;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const PART = 8_192;
/** A control character is as plain as a letter. */
const BEYOND_ASCII = /[^\x00-\x7f]/;

export function toByteText(text: string): ByteText {
  return isAscii(text) ? text : byteTextOf(encoder.encode(text));
}

export function byteTextOf(bytes: Uint8Array): ByteText {
  let text = "";
  for (let at = 0; at < bytes.length; at += PART) {
    const part = bytes.subarray(at, at + PART);
    // Mostly it is plain, and then the machine's own decoder is ten times faster.
    const plain = decoder.decode(part);
    text += isAscii(plain) ? plain : String.fromCharCode(...part);
  }
  return text;
}

export function bytesOf(text: ByteText): Uint8Array {
  if (isAscii(text)) return encoder.encode(text);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

/** As people read it; what is no Unicode becomes U+FFFD. */
export function fromByteText(text: ByteText): string {
  return isAscii(text) ? text : new TextDecoder().decode(bytesOf(text));
}

/** Whether it is the same when it is read as text. */
export function isText(text: ByteText): boolean {
  return isAscii(text) || toByteText(fromByteText(text)) === text;
}

function isAscii(text: string): boolean {
  return !BEYOND_ASCII.test(text);
}
