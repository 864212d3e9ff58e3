import { CotenantError } from "../errors/cotenant-error";
import type { Ulid } from "../kernel/ids";
import type { Git } from "../platform/git";
import { ISSUES, type RawIssue, toIds } from "./folder";
import { DEPENDENCIES, LABELS } from "./stamps";

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

  /** All of them by one Git process, however many. */
  async read(ids: readonly Ulid[]): Promise<Map<Ulid, RawIssue>> {
    if (ids.length === 0) return new Map();
    const asked = ids.flatMap((id) => FILES.map((file) => `${this.#commit}:${ISSUES}/${id}/${file}`));
    const { status, stdout, stderr } = await this.#git.run(["cat-file", "--batch"], {
      cwd: this.#cwd,
      input: `${asked.join("\n")}\n`,
      timeoutMs: 60_000,
    });
    if (status !== 0)
      throw new CotenantError(
        "E_GIT",
        `Git cannot read the committed issues: ${stderr.trim().slice(0, 300)}`,
      );
    const texts = batchAnswers(stdout, asked.length);
    const found = new Map<Ulid, RawIssue>();
    for (const [at, id] of ids.entries()) {
      const [text, labels, dependencies] = texts.slice(at * FILES.length, (at + 1) * FILES.length);
      if (text != null) found.set(id, { text, labels: labels ?? "", dependencies: dependencies ?? "" });
    }
    return found;
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
