import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { ObjectDatabase } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import { freshSuffix } from "../../platform/hex";
import { modesFor } from "../../store/layout";
import { quarantine, removeAll } from "./agent-index";
import { allowedBy } from "./allowing";
import { tipOf } from "./base";
import { branchRef } from "./branch-rules";
import { refuseFailed } from "./checks";
import { cleanMessage } from "./message";
import { refusePaths } from "./path-rules";
import type { Publisher } from "./publisher";
import type { PublishedPath, PublishRequest } from "./request";
import { findSecrets, refuseSecrets } from "./secrets";

interface PreviewCheck {
  readonly name: "branch" | "changes" | "paths" | "secrets" | "message" | "leases" | "merge" | "commands";
  /** Null: not looked at, because of what failed before. */
  readonly passed: boolean | null;
  readonly error: CotenantError | null;
}

export interface Preview {
  readonly ref: string;
  readonly base: ObjectId | null;
  readonly parent: ObjectId | null;
  readonly paths: readonly PublishedPath[];
  readonly diff: string;
  readonly isCut: boolean;
  readonly checks: readonly PreviewCheck[];
}

const LONGEST_DIFF = 1 << 20;
const NAMES: readonly PreviewCheck["name"][] = [
  "branch",
  "changes",
  "paths",
  "secrets",
  "message",
  "leases",
  "merge",
  "commands",
];

/** What a publish would do, and what would refuse it. Whatever it has to make on the way is gone afterwards. */
export async function preview(
  workspace: Workspace,
  publisher: Publisher,
  request: PublishRequest,
): Promise<Preview> {
  const { surroundings, repository, store } = workspace;
  const { platform, git } = surroundings;
  const { directory: mode } = modesFor(repository.config.sharedRepository);
  const root = `${store.layout.agentIndex}/preview-${freshSuffix(platform.random)}.objects`;
  await store.prepare();
  await platform.files.makeDirectory(store.layout.agentIndex, mode);
  await platform.files.makeDirectory(root, mode);
  const env = quarantine(repository.commonDir, root);
  const objects = new ObjectDatabase(platform, git, { ...repository, apart: { root, env } });
  try {
    return await new Previewing(workspace, publisher, request, objects, env).run();
  } finally {
    await objects.close();
    await removeAll(platform.files, root);
  }
}

class Previewing {
  readonly #env: Readonly<Record<string, string>>;
  readonly #checks = new Map<PreviewCheck["name"], CotenantError | null>();

  constructor(
    private readonly workspace: Workspace,
    private readonly publisher: Publisher,
    private readonly request: PublishRequest,
    private readonly objects: ObjectDatabase,
    env: Readonly<Record<string, string>>,
  ) {
    this.#env = env;
  }

  async run(): Promise<Preview> {
    const publisher = this.publisher;
    const { planner } = publisher;
    const request = this.request;
    const objects = this.objects;
    const ref = branchRef(request.branch);
    await this.#check("branch", async () => planner.refuseBranch(ref));
    await this.#check("message", async () => cleanMessage(request.message));
    const drafted = await this.#check("changes", () => planner.drafted(request, objects));
    if (drafted === null)
      return this.#report({ ref, base: null, parent: null, paths: [], diff: "", isCut: false });
    const { draft, before, base, source } = drafted;
    await this.#check("paths", async () =>
      refusePaths(await planner.pathObjections(objects, base, draft, before)),
    );
    const allowed = allowedBy(this.workspace.config);
    await this.#check("secrets", async () =>
      refuseSecrets(await findSecrets(objects, draft, before, allowed), allowed),
    );
    const coverage = (await this.#check("leases", () => planner.coverage(request, draft, before))) ?? {
      leases: [],
      scopes: [],
      optimistic: [],
      issues: [],
      edits: null,
      claims: [],
    };
    const message = this.#checks.get("message") === null ? cleanMessage(request.message) : "preview";
    // Never signed: nobody should be asked for a key to look at something.
    const authorship = { ...(await publisher.pen.authorship({ ...request, sign: false })), sign: false };
    const plan = { ref, base, draft, before, message, authorship, coverage, source };
    const tip = await tipOf(this.workspace, ref);
    const candidate = await this.#check("merge", () => planner.candidate(plan, objects, tip));
    const parent = tip ?? base.commit;
    if (candidate === null)
      return this.#report({ ref, base: base.commit, parent, paths: [], diff: "", isCut: false });
    await objects.flush();
    const isSound = [...this.#checks.values()].every((error) => error === null);
    if (isSound)
      await this.#check("commands", async () =>
        refuseFailed(await publisher.runChecks(request, plan, candidate, this.#env)),
      );
    const { diff, isCut } = await this.#diff(parent, candidate.commit);
    return this.#report({ ref, base: base.commit, parent, paths: candidate.paths, diff, isCut });
  }

  async #check<T>(name: PreviewCheck["name"], act: () => Promise<T>): Promise<T | null> {
    try {
      const answer = await act();
      this.#checks.set(name, null);
      return answer;
    } catch (error) {
      if (!(error instanceof CotenantError)) throw error;
      this.#checks.set(name, error);
      return null;
    }
  }

  #report(preview: Omit<Preview, "checks">): Preview {
    const checks = NAMES.map((name): PreviewCheck => {
      const error = this.#checks.get(name);
      return { name, passed: error === undefined ? null : error === null, error: error ?? null };
    });
    return { ...preview, checks };
  }

  async #diff(parent: ObjectId | null, commit: ObjectId): Promise<{ diff: string; isCut: boolean }> {
    const { git } = this.workspace.surroundings;
    const args = ["diff-tree", "-p", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames"];
    const { stdout } = await git.run(
      [...args, ...(parent === null ? ["--root", "--no-commit-id", commit] : [parent, commit])],
      { cwd: this.workspace.repository.worktreeRoot, env: this.#env, timeoutMs: 60_000 },
    );
    const text = new TextDecoder().decode(stdout.subarray(0, LONGEST_DIFF));
    return { diff: text, isCut: stdout.length > LONGEST_DIFF };
  }
}
