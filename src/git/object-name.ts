import type { ObjectFormat } from "../platform/git-object";

export { nameOfObject, type ObjectFormat, type ObjectType, withHeader } from "../platform/git-object";

/** The name of a Git object: the hash of its content, in hex. */
export type ObjectId = string;

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
