import type { GitDigest } from "../platform/platform";

/** The name of a Git object: the hash of its content, in hex. */
export type ObjectId = string;

export type ObjectFormat = "sha1" | "sha256";
export type ObjectType = "blob" | "tree" | "commit" | "tag";

const DIGITS: Readonly<Record<ObjectFormat, number>> = { sha1: 40, sha256: 64 };
const HEX = /^[0-9a-f]+$/;

export function isObjectId(format: ObjectFormat, text: string): boolean {
  return text.length === DIGITS[format] && HEX.test(text);
}

/** What Git writes where there is no object, as the old value of a ref that is to be created. */
export function noObject(format: ObjectFormat): ObjectId {
  return "0".repeat(DIGITS[format]);
}

/** How many bytes of a tree entry are the name of its object. */
export function rawLength(format: ObjectFormat): number {
  return DIGITS[format] / 2;
}

/** An object as it is hashed and stored: what it is, its length, and its content. */
export function withHeader(type: ObjectType, content: Uint8Array): Uint8Array {
  const header = new TextEncoder().encode(`${type} ${content.length}\0`);
  const whole = new Uint8Array(header.length + content.length);
  whole.set(header);
  whole.set(content, header.length);
  return whole;
}

/** The name of an object with its header. */
export function nameOfObject(digest: GitDigest, format: ObjectFormat, whole: Uint8Array): ObjectId {
  return format === "sha1" ? digest.sha1(whole) : digest.sha256(whole);
}
