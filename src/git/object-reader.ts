import { CotenantError } from "../errors/cotenant-error";
import { printable } from "../kernel/ids";
import type { GitProcess, LastingGit } from "../platform/git";
import { gitFailed } from "../platform/git-answers";
import type { PiecewiseDigest } from "../platform/platform";
import type { GitObject } from "./loose-objects";
import type { ObjectId, ObjectType } from "./object-name";

/** In a partial clone Git may have to fetch what is missing first. */
const TIMEOUT_MS = 120_000;
const LARGEST = 1 << 30;
const PIECE = 1 << 20;

/**
 * One Git that reads objects for as long as it is needed: packs, alternates and partial clones are its business. It is
 * started by the first question.
 */
export class ObjectReader {
  readonly #git: LastingGit;
  readonly #cwd: string;
  readonly #env: Readonly<Record<string, string>>;
  #process: GitProcess | null = null;
  /** One question at a time: the answers come in the order of the questions. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(git: LastingGit, cwd: string, env: Readonly<Record<string, string>> = {}) {
    this.#git = git;
    this.#cwd = cwd;
    // What is true of an object is true of its name: nothing may stand in for it.
    this.#env = { ...env, GIT_NO_REPLACE_OBJECTS: "1" };
  }

  /** Null where there is none. */
  read(oid: ObjectId): Promise<GitObject | null> {
    return this.#ask(async (process) => {
      process.write(`contents ${oid}\n`);
      const head = await this.#head(process, oid);
      if (head === null) return null;
      if (head.size > LARGEST)
        throw new CotenantError("E_GIT", `object ${oid} is too large to be held: ${head.size} bytes`);
      const content = await process.read(head.size + 1);
      if (content === null) throw await this.#ended(process);
      return { type: head.type, content: content.subarray(0, head.size) };
    });
  }

  /** What it is, and the name that its content has, read in pieces: not held, however large it is. */
  weigh(oid: ObjectId, begin: () => PiecewiseDigest): Promise<{ type: ObjectType; name: string } | null> {
    return this.#ask(async (process) => {
      process.write(`contents ${oid}\n`);
      const head = await this.#head(process, oid);
      if (head === null) return null;
      const digest = begin();
      digest.add(new TextEncoder().encode(`${head.type} ${head.size}\0`));
      for (let left = head.size; left > 0; ) {
        const piece = await process.read(Math.min(left, PIECE));
        if (piece === null) throw await this.#ended(process);
        digest.add(piece);
        left -= piece.length;
      }
      // The line's end after each object.
      await process.read(1);
      return { type: head.type, name: digest.hex() };
    });
  }

  /** Without its content. */
  look(oid: ObjectId): Promise<{ type: ObjectType; size: number } | null> {
    return this.#ask(async (process) => {
      process.write(`info ${oid}\n`);
      return this.#head(process, oid);
    });
  }

  async close(): Promise<void> {
    const process = this.#process;
    this.#process = null;
    await process?.end();
  }

  #ask<T>(question: (process: GitProcess) => Promise<T>): Promise<T> {
    const answer = this.#turn.then(async () => {
      // One that was killed meanwhile is replaced.
      if (this.#process?.isOver === true) this.#process = null;
      this.#process ??= this.#git.start(["cat-file", "--batch-command"], {
        cwd: this.#cwd,
        env: this.#env,
        timeoutMs: TIMEOUT_MS,
      });
      try {
        return await question(this.#process);
      } catch (error) {
        // Whatever is still to come belongs to this question.
        this.#process?.kill();
        this.#process = null;
        throw error;
      }
    });
    this.#turn = answer.catch(() => {});
    return answer;
  }

  async #head(process: GitProcess, oid: ObjectId): Promise<{ type: ObjectType; size: number } | null> {
    const line = await process.readLine();
    if (line === null) throw await this.#ended(process);
    if (line === `${oid} missing`) return null;
    const found = /^[0-9a-f]+ (blob|tree|commit|tag) (\d+)$/.exec(line);
    if (found === null)
      throw new CotenantError("E_GIT", `Git cannot show object ${oid}: ${printable(line, 200)}`);
    return { type: found[1] as ObjectType, size: Number(found[2]) };
  }

  async #ended(process: GitProcess): Promise<CotenantError> {
    const { stderr } = await process.end();
    return gitFailed("Git stopped reading objects", stderr);
  }
}
