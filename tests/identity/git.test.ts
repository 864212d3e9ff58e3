import * as fs from "node:fs";
import * as path from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import type { CotenantError } from "../../src/errors/cotenant-error";
import { type Git, isCutOff, parseGitVersion, requireRecentGit } from "../../src/platform/git";
import { nodeGit } from "../../src/platform/git-node";
import { makeRepository, temporaryDirectory, write } from "./temporary";

const home = temporaryDirectory();
const bin = path.join(home, "bin");
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const failureOf = (promise: unknown) =>
  Promise.resolve(promise).then(
    () => {
      throw new Error("it did not fail");
    },
    (error: unknown) => error as CotenantError,
  );

/** A `git` that shows how it was called, or does what FAKE says. */
beforeAll(() => {
  write(
    path.join(bin, "git"),
    '#!/bin/sh\nif [ -n "$FAKE" ]; then eval "$FAKE"; fi\nprintf "%s\\n" "$@"\nenv | sort\n',
  );
  fs.chmodSync(path.join(bin, "git"), 0o755);
});
const PATH = `${bin}:${process.env["PATH"]}`;

describe("Git as a child process", () => {
  it("runs no programs that a repository names, and never asks a person", async () => {
    const { stdout } = await nodeGit({ PATH }).run(["status", "--", "a b"], { cwd: home });
    const lines = text(stdout).split("\n");
    const expected = ["core.hooksPath=/dev/null", "core.fsmonitor=false", "protocol.ext.allow=never"];
    expect(lines.slice(0, 9)).toEqual([
      ...expected.flatMap((setting) => ["-c", setting]),
      "status",
      "--",
      "a b",
    ]);
    expect(lines).toContain("GIT_TERMINAL_PROMPT=0");
    expect(lines).toContain("LC_ALL=C");
  });

  it("that is killed has not answered: neither with no nor with nothing", async () => {
    const failure = await failureOf(nodeGit().run(["-c", "alias.x=!kill -9 $PPID", "x"], { cwd: home }));
    expect(failure).toMatchObject({ code: "E_GIT", data: { signal: "SIGKILL" } });
    expect(isCutOff(failure)).toBe(true);
  });

  it("sees no GIT_* but those it is given", async () => {
    const inherited = {
      PATH,
      GIT_DIR: "/evil",
      GIT_SSH_COMMAND: "evil",
      GIT_CONFIG_COUNT: "1",
      KEPT: "yes",
      LC_ALL: "de",
    };
    const { stdout } = await nodeGit(inherited).run([], { cwd: home, env: { GIT_WORK_TREE: "/given" } });
    const variables = text(stdout)
      .split("\n")
      .filter((line) => /^(GIT_|KEPT|LC_ALL)/.test(line));
    expect(variables).toEqual(["GIT_TERMINAL_PROMPT=0", "GIT_WORK_TREE=/given", "KEPT=yes", "LC_ALL=C"]);
  });

  it("gives status, bytes and words", async () => {
    const repository = makeRepository(path.join(home, "r"));
    const git = nodeGit();
    const hash = await git.run(["hash-object", "--stdin"], { cwd: repository, input: "hello\n" });
    expect(text(hash.stdout)).toBe("ce013625030ba8dba906f756967f9e9ca394464a\n");
    const binary = await git.run(["hash-object", "-w", "--stdin"], {
      cwd: repository,
      input: new Uint8Array([0, 255, 10]),
    });
    const back = await git.run(["cat-file", "blob", text(binary.stdout).trim()], { cwd: repository });
    expect([...back.stdout]).toEqual([0, 255, 10]);
    const failed = await git.run(["rev-parse", "--verify", "nothing"], { cwd: repository });
    expect(failed.status).toBe(128);
    expect(failed.stderr).toContain("fatal:");
    // Ending without reading its input is not a failure of ours.
    const unread = await git.run(["version"], { cwd: repository, input: new Uint8Array(1_000_000) });
    expect(unread.status).toBe(0);
  });

  it("runs no hook and no monitor of the repository", async () => {
    const repository = makeRepository(path.join(home, "hostile"));
    const witness = path.join(home, "witness");
    write(path.join(home, "monitor"), `#!/bin/sh\ntouch ${witness}\n`);
    fs.chmodSync(path.join(home, "monitor"), 0o755);
    fs.copyFileSync(path.join(home, "monitor"), path.join(repository, ".git/hooks/post-index-change"));
    fs.appendFileSync(path.join(repository, ".git/config"), `[core]\n\tfsmonitor = ${home}/monitor\n`);
    write(path.join(repository, "file"));
    expect((await nodeGit().run(["add", "file"], { cwd: repository })).status).toBe(0);
    expect((await nodeGit().run(["status"], { cwd: repository })).status).toBe(0);
    expect(fs.existsSync(witness)).toBe(false);
  });

  it("that does not end is ended", async () => {
    const git = nodeGit({ PATH, FAKE: "exec sleep 60" });
    const started = Date.now();
    expect(await failureOf(git.run(["fetch"], { cwd: home, timeoutMs: 100 }))).toMatchObject({
      code: "E_GIT_TIMEOUT",
    });
    expect(Date.now() - started).toBeLessThan(50_000);
  });

  it("that does not even listen is killed, and its children are not waited for", async () => {
    const pidFile = path.join(home, "pid");
    const git = nodeGit({ PATH, FAKE: `echo $$ > ${pidFile}; trap '' TERM; sleep 6 & sleep 6; sleep 6` });
    const hasBegun = () => fs.existsSync(pidFile) && fs.readFileSync(pidFile, "utf8") !== "";
    // The second is for a machine that is too busy to start anything within the first.
    for (const timeoutMs of [300, 3_000]) {
      if (hasBegun()) break;
      expect(await failureOf(git.run(["fetch"], { cwd: home, timeoutMs }))).toMatchObject({
        code: "E_GIT_TIMEOUT",
      });
    }
    const pid = Number(fs.readFileSync(pidFile, "utf8"));
    await expect.poll(() => isRunning(pid), { timeout: 10_000 }).toBe(false);
  });

  function isRunning(pid: number): boolean {
    try {
      process.kill(pid, 0);
      return true;
    } catch {
      return false;
    }
  }

  it("that is missing is named so, and so is a missing directory", async () => {
    const missing = await failureOf(
      nodeGit({ PATH: path.join(home, "nothing") }).run(["version"], { cwd: home }),
    );
    expect(missing).toMatchObject({ code: "E_GIT_TOO_OLD" });
    expect(missing.message).toContain("Git is missing");
    const gone = await failureOf(nodeGit().run(["version"], { cwd: path.join(home, "gone") }));
    expect(gone).toMatchObject({ code: "E_GIT" });
    expect(gone.message).toContain("is gone");
  });
});

describe("Git's version", () => {
  const answering = (line: string): Git => ({
    run: () => ({ status: 0, stdout: new TextEncoder().encode(line), stderr: "" }),
  });

  it("must be 2.38 or newer", async () => {
    for (const line of [
      "git version 2.38.0\n",
      "git version 2.39.5 (Apple Git-154)",
      "git version 3.0.0-rc1",
    ]) {
      expect((await requireRecentGit(answering(line), home)).major).toBeGreaterThanOrEqual(2);
    }
    for (const line of ["git version 2.37.9", "git version 1.9.1", "git version 2.9.5.windows.1", "what?"]) {
      expect(await failureOf(requireRecentGit(answering(line), home))).toMatchObject({
        code: "E_GIT_TOO_OLD",
      });
    }
    expect(parseGitVersion("git version 2.47.1.windows.2")).toEqual({
      text: "2.47.1.windows.2",
      major: 2,
      minor: 47,
    });
    expect(await requireRecentGit(nodeGit(), home)).toMatchObject({ major: 2 });
  });
});
