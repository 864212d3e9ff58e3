import { expect, it } from "vitest";
import type { LoggedEvent } from "../../src/coordinator/contract";
import type { Workspace } from "../../src/coordinator/workspace";
import type { Feed } from "../../src/daemon/feed";
import type { Journal } from "../../src/daemon/journal";
import { Keeper } from "../../src/daemon/keeper";
import { Sessions } from "../../src/daemon/sessions";
import { nodePlatform } from "../../src/platform/node/node";
import { until } from "../support/program";

it("looks once more after a thousand events that came while it looked, not a thousand times", async () => {
  let looks = 0;
  let tell: (event: LoggedEvent) => void = () => {};
  let goOn: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const workspace = {
    config: { values: { "coordination.auto_renew_leases": true } },
    coordinator: {
      list: async () => {
        looks++;
        await gate;
        return [];
      },
    },
  } as unknown as Workspace;
  const feed = {
    subscribe: async (listener: (event: LoggedEvent) => void) => {
      tell = listener;
      return { close: () => {} };
    },
  } as unknown as Feed;
  const keeper = new Keeper(nodePlatform(), async () => workspace, new Sessions(), feed, {
    note: () => {},
  } as unknown as Journal);
  keeper.start();
  await until("it looks", () => looks === 1);
  for (let sequence = 1; sequence <= 1_000; sequence++)
    tell({ type: "claim.acquired", actor: { pid: 0 }, sequence, payload: {} } as unknown as LoggedEvent);
  goOn();
  await until("it has looked again", () => looks > 1);
  await new Promise((resolve) => setTimeout(resolve, 200));
  keeper.close();
  expect(looks).toBe(2);
});
