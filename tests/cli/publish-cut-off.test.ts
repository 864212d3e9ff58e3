import { expect, it } from "vitest";
import { gitInFront } from "../support/git-in-front";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

it("a Git that is killed while another one is still asked is an error of the publish, and ends nothing else", async () => {
  const repo = TestRepo.make();
  repo.write("a.txt", "a\n");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  await repo.prepare("agent:a", "lock", "acquire", "a.txt");
  repo.write("a.txt", "b\n");
  const killed = 'case " $* " in *" commit.gpgSign "*) kill -KILL $$ ;; *" var "*) sleep 0.5 ;; esac';
  const args = ["publish", "--branch", "topic", "--message", "m", "--from-worktree", "a.txt"];
  const ran = await repo.askWith(gitInFront(scratch(), killed), "agent:a", ...args);
  expectJsonRefused(ran, 10, "E_GIT");
  expect(ran.error.data["signal"]).toBe("SIGKILL");
  expect((await repo.ask("agent:a", ...args)).status).toBe(0);
});
