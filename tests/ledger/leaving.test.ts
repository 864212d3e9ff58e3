import * as fs from "node:fs";
import { expect, it } from "vitest";
import { Machine, sharedIssues } from "../support/machines";
import { expectJsonRefused } from "../support/refusals";

it("deinit gives its claims back on the ledger; while it cannot, it names them and keeps everything", async () => {
  const { hub, first, ids } = await sharedIssues(2);
  // Listed by their ids, the last one first.
  const [held, offline] = ids as [string, string];
  const beside = Machine.clone(hub, "beside", { home: first.home });
  await first.prepare("claim", "acquire", held);
  fs.renameSync(hub.path, `${hub.path}.away`);
  await first.prepare("claim", "acquire", offline);
  const refused = await first.askHere("deinit");
  expectJsonRefused(refused, 10, "E_REMOTE_UNREACHABLE");
  expect(refused.error.message).toContain(held);
  expect(refused.error.hint).toContain(`cotenant claim release ${held}`);
  expect((await first.askHere("claim", "list")).data.leases).toMatchObject([
    { issue_id: offline, ledger: "provisional" },
    { issue_id: held, ledger: "confirmed" },
  ]);
  fs.renameSync(`${hub.path}.away`, hub.path);
  const { data } = await first.askHere("deinit");
  expect(data["given_back"], "what was never there is not given back").toEqual([held]);
  expect(hub.claim(held)).toMatchObject({ status: "released" });
  expect(hub.refs("refs/cotenant/claims/")).not.toHaveProperty(`refs/cotenant/claims/${offline}`);
  for (const id of ids) expect((await beside.askHere("claim", "acquire", id)).status).toBe(0);
});

it("deinit --dry-run says what is given back on the ledger, and exits as deinit would", async () => {
  const { hub, first, ids } = await sharedIssues(2);
  const [held, offline] = ids as [string, string];
  await first.prepare("claim", "acquire", held);
  await first.prepare("claim", "acquire", offline, "--offline");
  const before = { ...first.repo.picture(), claim: hub.claim(held) };
  const shown = await first.askHere("deinit", "--dry-run");
  expect(shown.data).toMatchObject({ dry_run: true, given_back: [held] });
  const { stdout } = await first.runHere("deinit", "--dry-run");
  expect(stdout).toContain(`would give back on the ledger: issue ${held}\n`);
  expect({ ...first.repo.picture(), claim: hub.claim(held) }).toEqual(before);
  fs.renameSync(hub.path, `${hub.path}.away`);
  const [dry, real] = [await first.askHere("deinit", "--dry-run"), await first.askHere("deinit")];
  expectJsonRefused(dry, 10, "E_REMOTE_UNREACHABLE");
  expect(dry.error).toEqual(real.error);
  // Given back here already: it is only said what others see, and nothing is refused.
  await first.prepare("claim", "release", held);
  const warned = await first.askHere("deinit", "--dry-run");
  expect(warned).toMatchObject({ status: 0 });
  expect(warned.json.warnings!.join()).toContain(`others see as claimed: issue ${held}`);
});

it("deinit after a claim was given back while the remote was away says until when others see it", async () => {
  const { hub, first, ids } = await sharedIssues(1);
  await first.prepare("claim", "acquire", ids[0]!);
  fs.renameSync(hub.path, `${hub.path}.away`);
  await first.prepare("claim", "release", ids[0]!);
  const ran = await first.askHere("deinit");
  expect(ran.json.warnings!.join(), String(ran)).toMatch(
    new RegExp(`others see as claimed: issue ${ids[0]} until \\d{4}-`),
  );
});

it("deinit says nothing of a claim that never was on the ledger", async () => {
  const { hub, first, ids } = await sharedIssues(1);
  fs.renameSync(hub.path, `${hub.path}.away`);
  await first.prepare("claim", "acquire", ids[0]!);
  const ran = await first.runHere("deinit");
  expect(ran.status, String(ran)).toBe(0);
  expect(ran.stdout).not.toContain("given back");
});
