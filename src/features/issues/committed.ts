import { CotenantError } from "../../errors/cotenant-error";
import type { Ulid } from "../../kernel/ids";
import type { Git } from "../../platform/git";
import { ISSUES, type RawIssue, toIds } from "./folder";
import { DEPENDENCIES, LABELS } from "./stamps";

/** Up to so many are asked for by name. */
const FEW = 30;
const FILES = ["issue.json", LABELS, DEPENDENCIES] as const;

/** The issues in a commit, mostly HEAD. An unborn HEAD, or one without issues, has none. */
export class CommittedIssues {
  readonly #git: Git;
  readonly #cwd: string;
  readonly #commit: string;

  constructor(git: Git, cwd: string, commit = "HEAD") {
    this.#git = git;
    this.#cwd = cwd;
    this.#commit = commit;
  }

  /** Which of them are not as they were in another commit; null when Git does not know that one any more. */
  async changedSince(commit: string): Promise<Ulid[] | null> {
    const { status, stdout } = await this.#git.run(
      [
        "diff-tree",
        "-r",
        "-z",
        "--name-only",
        "--no-renames",
        "--end-of-options",
        commit,
        this.#commit,
        "--",
        `:(top)${ISSUES}/`,
      ],
      { cwd: this.#cwd, timeoutMs: 60_000 },
    );
    if (status !== 0) return null;
    const names = new TextDecoder().decode(stdout).split("\0");
    return toIds([...new Set(names.map((name) => name.slice(ISSUES.length + 1).split("/")[0]!))]);
  }

  async ids(): Promise<Ulid[]> {
    const { status, stdout } = await this.#git.run(
      ["ls-tree", "-z", "--name-only", "--end-of-options", `${this.#commit}:${ISSUES}/`],
      { cwd: this.#cwd, timeoutMs: 60_000 },
    );
    return status === 0 ? toIds(new TextDecoder().decode(stdout).split("\0")) : [];
  }

  /** All of them by one or two Git processes, however many. Files that are not asked for are as if they were empty. */
  async read(ids: readonly Ulid[], wanted: readonly string[] = FILES): Promise<Map<Ulid, RawIssue>> {
    if (ids.length === 0) return new Map();
    // Git looks through the whole directory for each name that it is asked for.
    const blobs = ids.length > FEW ? await this.#blobs() : null;
    const asked: string[] = [];
    const askedFor: [Ulid, string][] = [];
    for (const id of ids)
      for (const file of wanted) {
        const path = `${ISSUES}/${id}/${file}`;
        const name = blobs === null ? `${this.#commit}:${path}` : blobs.get(path);
        if (name === undefined) continue;
        asked.push(name);
        askedFor.push([id, file]);
      }
    const texts = await this.#contents(asked);
    const files = new Map<Ulid, Map<string, string>>(ids.map((id) => [id, new Map()]));
    for (const [at, [id, file]] of askedFor.entries()) {
      const text = texts[at];
      if (text != null) files.get(id)!.set(file, text);
    }
    const found = new Map<Ulid, RawIssue>();
    for (const [id, own] of files) {
      const text = own.get(FILES[0]);
      if (text === undefined) continue;
      found.set(id, { text, labels: own.get(LABELS) ?? "", dependencies: own.get(DEPENDENCIES) ?? "" });
    }
    return found;
  }

  /** The object of every file of every issue, by its path. */
  async #blobs(): Promise<Map<string, string>> {
    const { status, stdout } = await this.#git.run(
      ["ls-tree", "-r", "-z", "--full-tree", "--end-of-options", this.#commit, `${ISSUES}/`],
      { cwd: this.#cwd, timeoutMs: 60_000 },
    );
    const blobs = new Map<string, string>();
    if (status !== 0) return blobs;
    for (const entry of new TextDecoder().decode(stdout).split("\0")) {
      const found = /^1\d{5} blob ([0-9a-f]{40,64})\t(.*)$/s.exec(entry);
      if (found !== null) blobs.set(found[2]!, found[1]!);
    }
    return blobs;
  }

  async #contents(names: readonly string[]): Promise<(string | null)[]> {
    if (names.length === 0) return [];
    const { status, stdout, stderr } = await this.#git.run(["cat-file", "--batch"], {
      cwd: this.#cwd,
      input: `${names.join("\n")}\n`,
      timeoutMs: 60_000,
    });
    if (status !== 0)
      throw new CotenantError(
        "E_GIT",
        `Git cannot read the committed issues: ${stderr.trim().slice(0, 300)}`,
      );
    return batchAnswers(stdout, names.length);
  }
}

/** `<oid> blob <size>\n<content>\n` for each, or `<name> missing\n`. */
function batchAnswers(bytes: Uint8Array, count: number): (string | null)[] {
  const decoder = new TextDecoder();
  const answers: (string | null)[] = [];
  let at = 0;
  while (answers.length < count && at < bytes.length) {
    const end = bytes.indexOf(10, at);
    if (end === -1) break;
    const head = decoder.decode(bytes.subarray(at, end));
    const found = /^[0-9a-f]{40,64} (\w+) (\d+)$/.exec(head);
    at = end + 1;
    if (found === null) {
      answers.push(null);
      continue;
    }
    const size = Number(found[2]);
    answers.push(found[1] === "blob" ? decoder.decode(bytes.subarray(at, at + size)) : null);
    at += size + 1;
  }
  return answers;
}
