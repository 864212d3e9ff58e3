import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { ObjectDatabase } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import { withObjectsApart } from "./agent-index";
import { allowedBy } from "./allowances";
import { tipOf } from "./base";
import { branchRef } from "./branch-rules";
import { refuseFailed } from "./checks";
import type { Coverage } from "./coverage";
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

const NO_COVERAGE: Coverage = {
  ...{ leases: [], scopes: [], optimistic: [] },
  ...{ issues: [], edits: null, claims: [] },
};

/** What a publish would do, and what would refuse it. Whatever it has to make on the way is gone afterwards. */
export async function preview(
  workspace: Workspace,
  publisher: Publisher,
  request: PublishRequest,
): Promise<Preview> {
  await workspace.store.prepare();
  return withObjectsApart(publisher.planner.indexPlace(), workspace.repository, "preview", (objects, env) =>
    previewIn(workspace, publisher, request, { objects, env }),
  );
}

async function previewIn(
  workspace: Workspace,
  publisher: Publisher,
  request: PublishRequest,
  { objects, env }: { objects: ObjectDatabase; env: Readonly<Record<string, string>> },
): Promise<Preview> {
  const { planner } = publisher;
  const outcomes = new Map<PreviewCheck["name"], CotenantError | null>();
  const check = async <T>(name: PreviewCheck["name"], act: () => Promise<T>): Promise<T | null> => {
    try {
      const answer = await act();
      outcomes.set(name, null);
      return answer;
    } catch (error) {
      if (!(error instanceof CotenantError)) throw error;
      outcomes.set(name, error);
      return null;
    }
  };
  const ref = branchRef(request.branch);
  const report = (seen: Partial<Preview>): Preview => ({
    ...{ ref, base: null, parent: null, paths: [], diff: "", isCut: false },
    ...seen,
    checks: NAMES.map((name) => {
      const error = outcomes.get(name);
      return { name, passed: error === undefined ? null : error === null, error: error ?? null };
    }),
  });
  await check("branch", async () => planner.refuseBranch(ref));
  await check("message", async () => cleanMessage(request.message));
  const drafted = await check("changes", () => planner.drafted(request, objects));
  if (drafted === null) return report({});
  const { draft, before, base, source } = drafted;
  await check("paths", async () => refusePaths(await planner.pathObjections(objects, base, draft, before)));
  const allowed = allowedBy(workspace.config);
  await check("secrets", async () =>
    refuseSecrets(await findSecrets(objects, draft, before, allowed), allowed),
  );
  const coverage = (await check("leases", () => planner.coverage(request, draft, before))) ?? NO_COVERAGE;
  const message = outcomes.get("message") === null ? cleanMessage(request.message) : "preview";
  // Never signed: nobody should be asked for a key to look at something.
  const authorship = { ...(await publisher.pen.authorship({ ...request, sign: false })), sign: false };
  const plan = { ref, base, draft, before, message, authorship, coverage, source };
  const tip = await tipOf(workspace, ref);
  const candidate = await check("merge", () => planner.candidate(plan, objects, tip));
  const parent = tip ?? base.commit;
  if (candidate === null) return report({ base: base.commit, parent });
  await objects.flush();
  if ([...outcomes.values()].every((error) => error === null))
    await check("commands", async () =>
      refuseFailed(await publisher.runChecks(request, plan, candidate, env)),
    );
  const shown = await diffOf(workspace, parent, candidate.commit, env);
  return report({ base: base.commit, parent, paths: candidate.paths, ...shown });
}

async function diffOf(
  { surroundings, repository }: Workspace,
  parent: ObjectId | null,
  commit: ObjectId,
  env: Readonly<Record<string, string>>,
): Promise<Pick<Preview, "diff" | "isCut">> {
  const args = ["diff-tree", "-p", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames"];
  const { stdout } = await surroundings.git.run(
    [...args, ...(parent === null ? ["--root", "--no-commit-id", commit] : [parent, commit])],
    { cwd: repository.worktreeRoot, env, timeoutMs: 60_000 },
  );
  const text = new TextDecoder().decode(stdout.subarray(0, LONGEST_DIFF));
  return { diff: text, isCut: stdout.length > LONGEST_DIFF };
}
