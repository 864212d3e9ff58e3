import { expect, it } from "vitest";
import { Machine, sharedIssues } from "../support/machines";
import { expectJsonRefused } from "../support/refusals";

it("a paused clone claims nothing, at the remote neither, goes on with what it has, and binds no other clone", async () => {
  const { hub, first, ids } = await sharedIssues(2);
  const [held, free] = ids as [string, string];
  await first.ask("claim", "acquire", held);
  const person = new Machine("first", first.repo, first.home, { COTENANT_AGENT_ID: "human:ada" });
  await person.ask("pause", "--reason", "moving the database");
  for (const args of [
    ["claim", "acquire", free],
    ["claim", "acquire", free, "--offline"],
    ["claim", "next"],
  ])
    expectJsonRefused(await first.ask(...args), 11, "E_PAUSED");
  expect(() => hub.claim(free)).toThrow();
  expect((await first.ask("claim", "renew", held, "--ttl", "7200")).status).toBe(0);
  expect((await first.ask("claim", "release", held)).status).toBe(0);
  expect(hub.claim(held)).toMatchObject({ status: "released" });
  const second = Machine.clone(hub, "second");
  expect((await second.ask("claim", "acquire", free)).status).toBe(0);
  await person.ask("resume");
  expect((await first.ask("claim", "acquire", held)).status).toBe(0);
});
