import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Ground } from "../../testing/checker/things";
import { childEnvironment } from "../../testing/workload/environment";
import { CotenantError, permissionError } from "../errors/cotenant-error";
import { plainIssues } from "../features/issues/desk";
import { newIssue } from "../features/issues/model";
import { IssueWriter } from "../features/issues/writer";
import type { Ulid } from "../kernel/ids";
import { nodeGit } from "../platform/git-node";
import { newUlid } from "../platform/new-ulid";
import { nodePlatform } from "../platform/node/node";
import { FILES, groundWith, ISSUE_TITLES } from "./plan";

/** A repository of nobody's, with everything a run leaves behind in one folder. */
export interface Scratch {
  readonly folder: string;
  /** The main worktree and two linked ones. */
  readonly worktrees: readonly string[];
  readonly control: string;
  readonly witness: string;
  readonly ground: Ground;
  /** Issue titles by key, for people. */
  readonly titles: ReadonlyMap<string, string>;
  readonly env: Readonly<Record<string, string>>;
}

/** Small, so that the log is rotated while everybody writes. */
const ROTATE_BYTES = 128 << 10;

export function makeScratchFolder(): string {
  try {
    return fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "cotenant-demo-")));
  } catch (error) {
    throw permissionError(
      `no scratch repository in ${tmpdir()}: ${(error as Error).message}`,
      "set TMPDIR to a directory on a local disk that you may write to",
    );
  }
}

export async function fillScratch(folder: string): Promise<Scratch> {
  const env = childEnvironment(folder);
  const [main, ...linked] = ["repository", "second", "third"].map((name) => join(folder, name));
  const witness = join(folder, "witness");
  for (const directory of [join(folder, "home"), main!, witness]) fs.mkdirSync(directory);
  const git = gitIn(main!, env);
  await git("init", "--quiet", "--template=", "--initial-branch=main", ".");
  for (const path of FILES) writeInto(main!, path, `${path}\n`);
  writeInto(main!, ".cotenant/config.toml", `[store]\nrotate_bytes = ${ROTATE_BYTES}\n`);
  const ids = await createIssues(main!);
  await git("add", "--all");
  await git(...AUTHOR, "commit", "--quiet", "--no-gpg-sign", "--message=A place to share");
  for (const path of linked) await git("worktree", "add", "--quiet", "--detach", path);
  const ground = groundWith(ids);
  return {
    folder,
    worktrees: [main!, ...linked],
    control: join(main!, ".git", "cotenant"),
    witness,
    ground,
    titles: new Map(ground.issues.map((key, i) => [key, ISSUE_TITLES[i]!])),
    env,
  };
}

const AUTHOR = ["-c", "user.name=demo", "-c", "user.email=demo@cotenant.invalid"];

function gitIn(cwd: string, env: Record<string, string>) {
  const git = nodeGit(env);
  return async (...args: string[]): Promise<void> => {
    const { status, stderr } = await git.run(args, { cwd, env: { GIT_CONFIG_NOSYSTEM: "1" } });
    if (status === 0) return;
    const said = stderr.trim();
    throw new CotenantError("E_GIT", `git ${args.join(" ")} failed in the scratch repository: ${said}`);
  };
}

function writeInto(root: string, path: string, text: string): void {
  fs.mkdirSync(join(root, path, ".."), { recursive: true });
  fs.writeFileSync(join(root, path), text);
}

async function createIssues(root: string): Promise<Ulid[]> {
  const platform = nodePlatform();
  const writer = new IssueWriter(plainIssues(platform, root), null, "off", "human:grace");
  const now = new Date(platform.clock.wallMs()).toISOString();
  const ids: Ulid[] = [];
  for (const title of ISSUE_TITLES) {
    const id = newUlid(platform);
    const stamp = { version: 1, origin: "", lease_id: null, fencing_token: null, sequence: null };
    const issue = newIssue({ id, title, created_at: now, created_by: "human:grace", stamp });
    await writer.create([{ issue, labels: [], dependencies: [] }]);
    ids.push(id);
  }
  return ids;
}

export function removeScratch(folder: string): void {
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
}
