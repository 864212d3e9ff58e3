import { newUlid } from "../../platform/new-ulid";
import type { LedgerCopy } from "./copy";
import { emailOf } from "./git-remote";

export interface NewCommit {
  /** What it goes on from; null for the first one. */
  readonly parent: string | null;
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly message: string;
  readonly author: string;
}

/** Only names that we make ourselves, or have checked letter by letter, become names in a tree. */
const NAME = /^\.cotenant(?:\/[A-Za-z0-9_][A-Za-z0-9._-]*)+$/;

export function isFitName(path: string): boolean {
  return NAME.test(path) && path.length < 500 && !/\.(?:lock|git)(?:\/|$)/i.test(path);
}

/** A commit of the data branch, in the copy: nothing is checked out, nothing is staged. Answers its id. */
export async function commitFiles(copy: LedgerCopy, commit: NewCommit): Promise<string> {
  const ref = `refs/look/${newUlid(copy.platform)}/new`;
  const chunks: Uint8Array[] = [];
  const text = (line: string) => chunks.push(utf8.encode(line));
  const data = (bytes: Uint8Array) => {
    text(`data ${bytes.length}\n`);
    chunks.push(bytes);
    text("\n");
  };
  text(`feature done\ncommit ${ref}\nmark :1\n`);
  text(
    `committer ${commit.author} <${emailOf(commit.author)}> ${Math.floor(copy.platform.clock.wallMs() / 1000)} +0000\n`,
  );
  data(utf8.encode(commit.message));
  if (commit.parent !== null) text(`from ${commit.parent}\n`);
  for (const [path, bytes] of commit.files) {
    if (!isFitName(path)) throw new Error(`not a name of the data branch: ${path}`);
    text(`M 100644 inline ${path}\n`);
    data(bytes);
  }
  text("get-mark :1\ndone\n");
  const printed = await copy.text(["fast-import", "--quiet", "--done"], joined(chunks));
  await copy.run(["update-ref", "-d", ref]);
  return printed.trim();
}

const utf8 = new TextEncoder();

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

/** The blobs of a commit below these paths, by name. */
export async function treeOf(
  copy: LedgerCopy,
  commit: string,
  paths: readonly string[],
): Promise<Map<string, string>> {
  const text = await copy.text(["ls-tree", "-r", "-z", "--full-tree", commit, "--", ...paths]);
  return parseTree(text);
}

export function parseTree(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const entry of text.split("\0")) {
    const tab = entry.indexOf("\t");
    const [mode, type, oid] = entry.slice(0, tab).split(" ");
    // No links, no submodules: only plain files are data.
    if (type === "blob" && (mode === "100644" || mode === "100755") && oid !== undefined)
      found.set(entry.slice(tab + 1), oid);
  }
  return found;
}

/** Contents of blobs, by id. */
export async function blobsOf(
  run: (args: readonly string[], input: string) => Promise<Uint8Array>,
  oids: readonly string[],
): Promise<Map<string, Uint8Array>> {
  const found = new Map<string, Uint8Array>();
  if (oids.length === 0) return found;
  const output = await run(["cat-file", "--batch"], `${oids.join("\n")}\n`);
  let at = 0;
  for (const oid of oids) {
    const end = output.indexOf(10, at);
    if (end === -1) break;
    const [, type, size] = new TextDecoder().decode(output.subarray(at, end)).split(" ");
    at = end + 1;
    if (type !== "blob") continue;
    found.set(oid, output.subarray(at, at + Number(size)));
    at += Number(size) + 1;
  }
  return found;
}
