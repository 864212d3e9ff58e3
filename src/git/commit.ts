import type { ObjectId } from "./object-name";

/** Who and when, as a commit says it. */
export interface Signature {
  readonly name: string;
  readonly email: string;
  /** Seconds since 1970. */
  readonly time: number;
  /** `+0100`. */
  readonly zone: string;
}

export interface Commit {
  readonly tree: ObjectId;
  readonly parents: readonly ObjectId[];
  readonly author: Signature;
  readonly committer: Signature;
  readonly message: string;
}

/** What of a commit others go by. */
export type ParsedCommit = Pick<Commit, "tree" | "parents">;

export function encodeCommit({ tree, parents, author, committer, message }: Commit): Uint8Array {
  const head = [
    `tree ${tree}`,
    ...parents.map((parent) => `parent ${parent}`),
    `author ${signatureText(author)}`,
    `committer ${signatureText(committer)}`,
  ];
  return new TextEncoder().encode(`${head.join("\n")}\n\n${message}`);
}

/** Of any commit, also one with headers that we know nothing of; null where there is no tree. */
export function parseCommit(content: Uint8Array): ParsedCommit | null {
  const text = new TextDecoder().decode(content);
  const end = text.indexOf("\n\n");
  const head = (end === -1 ? text : text.slice(0, end)).split("\n");
  const tree = /^tree ([0-9a-f]+)$/.exec(head[0] ?? "")?.[1];
  if (tree === undefined) return null;
  const parents: ObjectId[] = [];
  for (const line of head.slice(1)) {
    const parent = /^parent ([0-9a-f]+)$/.exec(line)?.[1];
    if (parent === undefined) break;
    parents.push(parent);
  }
  return { tree, parents };
}

export function signatureText({ name, email, time, zone }: Signature): string {
  return `${withoutCrud(name)} <${withoutCrud(email)}> ${time} ${zone}`;
}

/** What `git var GIT_AUTHOR_IDENT` answers; null for anything else. */
export function parseSignature(line: string): Signature | null {
  const found = /^([^<>\n]*) <([^<>\n]*)> (\d{1,12}) ([+-]\d{4})$/.exec(line.trim());
  return found === null
    ? null
    : { name: found[1]!, email: found[2]!, time: Number(found[3]), zone: found[4]! };
}

/** Git's own rule for names and addresses: nothing that would end them early, and no crud around them. */
function withoutCrud(text: string): string {
  const plain = text.replace(/[<>\n\r\0]/g, "");
  let [start, end] = [0, plain.length];
  while (start < end && isCrud(plain[start]!)) start++;
  while (end > start && isCrud(plain[end - 1]!)) end--;
  return plain.slice(start, end);
}

function isCrud(char: string): boolean {
  return char <= " " || ".,:;\"\\'".includes(char);
}
