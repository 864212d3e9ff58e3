import { expect, it } from "vitest";
import type { Hub } from "../support/hub";
import { behindProxy, type Machine } from "../support/machines";
import type { Ran } from "../support/program";

/** Right after the push has arrived, somebody moves the claim on: its record goes through `change`. */
function movedOnAtOnce(change: string): string {
  return `
while read old new ref; do
  case $ref in refs/cotenant/claims/*)
    next=$(git log -1 --format=%B $new | ${change} | git -c user.name=n -c user.email=n@n commit-tree -p $new $new^{tree})
    git update-ref $ref $next $new
  esac
done`;
}

async function publishedWithoutAnswer(change: string): Promise<{ hub: Hub; first: Machine; ran: Ran }> {
  const { hub, proxy, first, ids } = await behindProxy(1);
  await first.prepare("lock", "acquire", "src/a.ts");
  await first.prepare("claim", "acquire", ids[0]!);
  hub.hook("post-receive", movedOnAtOnce(change));
  proxy.weather = { losesAnswer: true };
  first.repo.write("src/a.ts");
  const args = ["--branch", "topic/a", "--message", "Work", "--from-worktree", "src/a.ts", "--push"];
  const ran = await first.ask("publish", ...args);
  expect(proxy.lost).toBe(1);
  expect(hub.history(ids[0]!)).toHaveLength(3);
  expect(hub.refs("refs/heads/topic/")).toEqual({ "refs/heads/topic/a": ran.data["commit"] });
  return { hub, first, ran };
}

it("S68: a push whose answer is lost is found at the remote, also when the claim has been beaten since", async () => {
  const { ran } = await publishedWithoutAnswer("cat");
  expect(ran.data, String(ran)).toMatchObject({ push: { result: "verified" } });
});

it("S68: it is found also when somebody else has taken the claim since, and the lease ends", async () => {
  const { first, ran } = await publishedWithoutAnswer(
    'sed s/agent:first/agent:second/g\\;s/lease_id.:.01/lease_id\\":\\"00/\\;s/clone_id.:.01/clone_id\\":\\"00/',
  );
  expect(ran.data, String(ran)).toMatchObject({ push: { result: "verified" } });
  expect(ran.json.warnings!.join()).toContain("agent:second");
  expect((await first.askHere("claim", "list")).data.leases).toEqual([]);
});
