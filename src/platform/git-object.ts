import type { GitDigest } from "./platform";

export type ObjectFormat = "sha1" | "sha256";
export type ObjectType = "blob" | "tree" | "commit" | "tag";

/** An object as it is hashed and stored: what it is, its length, and its content. */
export function withHeader(type: ObjectType, content: Uint8Array): Uint8Array {
  const header = new TextEncoder().encode(`${type} ${content.length}\0`);
  const whole = new Uint8Array(header.length + content.length);
  whole.set(header);
  whole.set(content, header.length);
  return whole;
}

/** The name of an object with its header. */
export function nameOfObject(digest: GitDigest, format: ObjectFormat, whole: Uint8Array): string {
  return format === "sha1" ? digest.sha1(whole) : digest.sha256(whole);
}
