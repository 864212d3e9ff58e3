import { expect, it } from "vitest";
import { gitInFront } from "../support/git-in-front";
import { Machine, sharedIssues } from "../support/machines";
import { expectJsonRefused } from "../support/refusals";
import { scratch } from "../support/scratch";

it("a Git that dies of a connection that was cut means that the remote cannot be reached", async () => {
  const { hub, first, ids } = await sharedIssues(2);
  const cut = gitInFront(
    scratch(),
    'case " $* " in *" fetch "* | *" ls-remote "* | *" push "*) kill -PIPE $$ ;; esac',
  );
  const [provisional, again] = ids as [string, string];
  const claimed = await first.askWith(cut, "claim", "acquire", provisional);
  expect(claimed.data, String(claimed)).toMatchObject({ offline: true, degraded: true });
  for (const args of [["sync"], ["sync", "--reconcile"]])
    expectJsonRefused(await first.askWith(cut, ...args), 10, "E_REMOTE_UNREACHABLE");
  const strict = { ...cut, COTENANT_SYNC_OFFLINE_MODE: "fail" };
  expectJsonRefused(await first.askWith(strict, "claim", "acquire", again), 10, "E_REMOTE_UNREACHABLE");
  expect(hub.refs("refs/cotenant/claims/")).toEqual({});
  expect((await first.ask("sync", "--reconcile")).status).toBe(0);
  expect(hub.claim(provisional)).toMatchObject({ lease_id: claimed.lease.lease_id });
  const second = Machine.clone(hub, "second");
  expectJsonRefused(await second.ask("claim", "acquire", provisional), 1, "E_LOCK_CONFLICT");
});
