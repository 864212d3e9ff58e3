import { CotenantError } from "../../errors/cotenant-error";
import { type Commit, parseSignature, type Signature } from "../../git/commit";
import type { ObjectDatabase } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import type { Environment } from "../../identity/repository";
import { printable } from "../../kernel/ids";
import type { Git, GitOptions } from "../../platform/git";
import { gitWords } from "../../platform/git-answers";
import type { Clock } from "../../platform/platform";

/** Who a commit is by, and whether it is to be signed. */
export interface Authorship {
  readonly author: Signature;
  readonly committer: Signature;
  readonly sign: boolean;
}

interface Person {
  readonly signature: Signature;
  /** The caller has fixed the time as well. */
  readonly isDated: boolean;
}

const NAMES = ["NAME", "EMAIL", "DATE"] as const;
const SIGNING_MS = 60_000;

/** Asks Git once who the caller is; later commits of the same process only take a new time. */
export class CommitWriter {
  #known: Promise<{ author: Person; committer: Person; signs: boolean }> | null = null;

  constructor(
    private readonly git: Git,
    private readonly cwd: string,
    private readonly env: Environment,
    private readonly clock: Clock,
  ) {}

  async authorship(given: { readonly author: string | null; readonly sign: boolean }): Promise<Authorship> {
    this.#known ??= this.#ask();
    const { author, committer, signs } = await this.#known;
    const named =
      given.author === null ? author : { ...author, signature: authorNamed(given.author, author.signature) };
    return {
      author: this.#now(named),
      committer: this.#now(committer),
      sign: given.sign || signs,
    };
  }

  /** The commit's id. A signed one is written by Git, which knows how to sign. */
  async write(objects: ObjectDatabase, commit: Commit, sign: boolean): Promise<ObjectId> {
    if (!sign) return objects.writeCommit(commit);
    const { tree, parents, author, committer, message } = commit;
    // Git looks at the tree.
    await objects.flush();
    const env = peopleIn(author, committer);
    const args = ["-c", "core.fsync=loose-object", "-c", "i18n.commitEncoding=UTF-8", "commit-tree", "-S"];
    const oid = await this.#signed(
      [...args, ...parents.flatMap((parent) => ["-p", parent]), "-F", "-", tree],
      { env, input: message },
    );
    objects.adopt(oid);
    return oid;
  }

  /** Signs a commit that nobody will see, where commits are to be signed: whoever cannot is told before the work begins. */
  async trySigning(commit: ObjectId): Promise<void> {
    const { author, committer, sign } = await this.authorship({ author: null, sign: false });
    const env = peopleIn(author, committer);
    if (sign) await this.#signed(["commit-tree", "-S", "-m", "a try", `${commit}^{tree}`], { env });
  }

  async #signed(args: readonly string[], options: Pick<GitOptions, "env" | "input">): Promise<ObjectId> {
    const { status, stdout, stderr } = await this.git.run(args, {
      ...options,
      cwd: this.cwd,
      timeoutMs: SIGNING_MS,
    });
    if (status === 0) return new TextDecoder().decode(stdout).trim();
    throw new CotenantError("E_GIT", `the commit could not be signed: ${gitWords(stderr)}`, {
      hint: "sign something by hand first: git commit-tree -S HEAD^{tree} -m test",
    });
  }

  #now({ signature, isDated }: Person): Signature {
    return isDated ? signature : { ...signature, time: Math.floor(this.clock.wallMs() / 1000) };
  }

  async #ask() {
    const [author, committer, signs] = await Promise.all([
      this.#identity("AUTHOR"),
      this.#identity("COMMITTER"),
      this.git.run(["config", "--type=bool", "--get", "commit.gpgSign"], { cwd: this.cwd }),
    ]);
    return { author, committer, signs: new TextDecoder().decode(signs.stdout).trim() === "true" };
  }

  async #identity(role: "AUTHOR" | "COMMITTER"): Promise<Person> {
    // Ours are the only variables that Git will see: these are the caller's word on who it is.
    const env: Record<string, string> = {};
    for (const name of NAMES) {
      const value = this.env[`GIT_${role}_${name}`];
      if (value !== undefined) env[`GIT_${role}_${name}`] = value;
    }
    const isDated = env[`GIT_${role}_DATE`] !== undefined;
    const { status, stdout, stderr } = await this.git.run(["var", `GIT_${role}_IDENT`], {
      cwd: this.cwd,
      env,
    });
    const signature = status === 0 ? parseSignature(new TextDecoder().decode(stdout)) : null;
    if (signature !== null) return { signature, isDated };
    throw new CotenantError("E_CONFIG", "Git does not know who the commit is by", {
      hint: "tell it: git config user.name <name> and git config user.email <address>",
      data: { git: gitWords(stderr) },
    });
  }
}

function peopleIn(author: Signature, committer: Signature): Record<string, string> {
  const people = Object.entries({ AUTHOR: author, COMMITTER: committer });
  return Object.fromEntries(
    people.flatMap(([role, { name, email, time, zone }]) => [
      [`GIT_${role}_NAME`, name],
      [`GIT_${role}_EMAIL`, email],
      [`GIT_${role}_DATE`, `@${time} ${zone}`],
    ]),
  );
}

const AUTHOR = /^\s*([^<>\n]+?)\s*<([^<>\s]*)>\s*$/;

function authorNamed(text: string, like: Signature): Signature {
  const found = text.length > 500 ? null : AUTHOR.exec(text);
  if (found === null)
    throw new CotenantError("E_USAGE", `"${printable(text)}" names no author`, {
      hint: 'write it as in a commit: --author "Ada Lovelace <ada@example.org>"',
    });
  return { ...like, name: found[1]!, email: found[2]! };
}
