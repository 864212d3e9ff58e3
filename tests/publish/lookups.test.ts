import { expect, it } from "vitest";
import { Workspace } from "../../src/coordinator/workspace";
import { Publisher } from "../../src/features/publish/publisher";
import type { PublishRequest } from "../../src/features/publish/request";
import type { LeaseKey } from "../../src/kernel/keys";
import type { LastingGit } from "../../src/platform/git";
import { nodeCommands } from "../../src/platform/node/commands";
import { thisMachine } from "../../src/platform/node/this-machine";
import type { Files } from "../../src/platform/platform";
import { Scene } from "../git/scene";

/** What a publish looks at, as it does. */
interface Looks {
  readonly directories: string[];
  readonly gits: string[];
}

/** The real machine, and a list of what it is asked. */
function watchedMachine(cwd: string, looks: Looks) {
  const { platform, git, ...machine } = thisMachine();
  const files: Files = Object.assign(Object.create(platform.files), {
    readDirectory: (path: string) => {
      looks.directories.push(path);
      return platform.files.readDirectory(path);
    },
  });
  const watched: LastingGit = Object.assign(Object.create(git), {
    run: (...asked: Parameters<LastingGit["run"]>) => {
      looks.gits.push(asked[0].join(" "));
      return git.run(...asked);
    },
  });
  return { ...machine, platform: { ...platform, files }, git: watched, cwd, isTerminal: false };
}

function requestOf(inputs: PublishRequest["inputs"]): PublishRequest {
  const flags = { sign: false, release: false, settle: false };
  const rest = { base: null, author: null, requestId: null, secret: null, commands: nodeCommands() };
  return { ...flags, ...rest, branch: "topic/x", message: "m", inputs };
}

it("a publish looks once for what others have left open and at checkouts, besides the looks under the mutex", async () => {
  const scene = new Scene();
  scene.write("a.txt", "one\n");
  scene.commit();
  scene.git("worktree", "add", "--quiet", "-b", "other", `${scene.root}.other`);
  const looks: Looks = { directories: [], gits: [] };
  const workspace = await Workspace.open(watchedMachine(scene.root, looks), { agentId: "agent:a" });
  const session = await workspace.session("write");
  await session.acquire([{ key: "file:a.txt" as LeaseKey, reach: "worktree" }], { ttlSecs: 600 });
  const publisher = new Publisher(workspace, session);
  try {
    for (const content of ["two\n", "three\n"]) {
      scene.write("a.txt", content);
      looks.directories.length = 0;
      looks.gits.length = 0;
      const published = await publisher.publish(requestOf([{ op: "from-worktree", path: "a.txt" }]));
      expect(published.changed).toBe(true);
      const of = (end: string) => looks.directories.filter((path) => path.endsWith(end)).length;
      // Under the mutex the store looks for them as well.
      expect(of("/facts/publish"), "looks for what was left open").toBe(1 + 1);
      expect(of("/.git/worktrees"), "looks at what is checked out").toBe(1 + 1);
      const asked = looks.gits.filter((words) => /^(?:merge-base|log|rev-parse|config|var) /.test(words));
      expect(asked, "nothing is asked of Git twice").toEqual([...new Set(asked)]);
    }
  } finally {
    await publisher.close();
  }
});
