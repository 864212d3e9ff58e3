import { expect, it } from "vitest";
import { Machine, sharedIssues } from "../support/machines";
import { expectJsonRefused } from "../support/refusals";

/** The same clone where nothing names the ledger: on a branch, in a worktree or in a shell that does not know of it. */
function unnamed({ name, repo, home }: Machine): Machine {
  return new Machine(name, repo, home, { COTENANT_SYNC_LEDGER_BRANCH: undefined });
}

it("a clone that was set up stays with its ledger where no settings name it, until it is taken out", async () => {
  const { hub, first, ids } = await sharedIssues(2);
  const [id, other] = ids as [string, string];
  await first.prepare("claim", "acquire", id);
  // Never told of it: its claims are its own.
  const second = Machine.clone(hub, "second");
  expect((await unnamed(second).askHere("claim", "acquire", other)).data["ledger"]).toBeUndefined();
  await unnamed(second).prepare("claim", "release", other);
  await second.prepare("sync", "--setup-ledger");

  expectJsonRefused(await unnamed(second).askHere("claim", "acquire", id), 1, "E_LOCK_CONFLICT");
  const { settings } = (await unnamed(second).askHere("config", "show", "sync.ledger_branch"))
    .data as unknown as {
    settings: unknown[];
  };
  expect(settings).toMatchObject([{ value: "cotenant-sync", source: "clone" }]);
  // Given back where nothing names it, it is given back for all.
  await unnamed(first).prepare("claim", "release", id);
  expect(hub.claim(id)).toMatchObject({ status: "released" });
  const { lease } = await unnamed(second).prepare("claim", "acquire", id);
  expect(hub.claim(id)).toMatchObject({ status: "held", lease_id: lease.lease_id });

  // Another one in the repository's file is as loose as none.
  second.repo.write(".cotenant/config.toml", '[sync]\nledger_branch = "another"\n');
  expect((await unnamed(second).askHere("claim", "renew", id)).status).toBe(0);
  const named = await unnamed(second).askHere("sync", "--status");
  expect(named.data).toMatchObject({ branch: "cotenant-sync", remote: "origin" });
  second.repo.write(".cotenant/config.toml", "");

  await unnamed(second).prepare("sync", "--cleanup-ledger", "--yes");
  expectJsonRefused(await unnamed(second).askHere("sync"), 3, "E_LEDGER_NOT_CONFIGURED");
});
