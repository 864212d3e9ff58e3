import { expect, it } from "vitest";
import { FaultyProxy, Hub } from "../support/hub";
import { sharedIssues } from "../support/machines";

/** As another process of the clone would, right after the push has arrived. */
const BEATS_AT_ONCE = `
while read old new ref; do
  case $ref in refs/cotenant/claims/*)
    message=$(git log -1 --format=%B $new)
    next=$(echo "$message" | git -c user.name=n -c user.email=n@n commit-tree -p $new $new^{tree})
    git update-ref $ref $next $new
  esac
done`;

it("S68: a push whose answer is lost is found at the remote, also when the claim has been beaten since", async () => {
  const hub = new Hub();
  const proxy = await FaultyProxy.to(await hub.daemon());
  const { first, ids } = await sharedIssues(1, { hub, setUp: false });
  first.repo.git("remote", "set-url", "origin", `git://127.0.0.1:${proxy.port}/hub.git`);
  await first.ask("sync", "--setup-ledger");
  await first.ask("lock", "acquire", "src/a.ts");
  await first.ask("claim", "acquire", ids[0]!);
  hub.hook("post-receive", BEATS_AT_ONCE);
  proxy.weather = { losesAnswer: true };
  first.repo.write("src/a.ts");
  const args = ["--branch", "topic/a", "--message", "Work", "--from-worktree", "src/a.ts", "--push"];
  const ran = await first.ask("publish", ...args);
  expect(proxy.lost).toBe(1);
  expect(hub.history(ids[0]!)).toHaveLength(3);
  expect(hub.refs("refs/heads/topic/")).toEqual({ "refs/heads/topic/a": ran.data["commit"] });
  expect(ran.data, String(ran)).toMatchObject({ push: { result: "verified" } });
});
