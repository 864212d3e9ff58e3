import { expect, it } from "vitest";
import { agents } from "./agents/layer";
import { complaints, prove } from "./layer";

it("agents of every harness that are killed at any instant never write one file without its lease", {
  timeout: 600_000,
}, async () => {
  const result = await prove(agents, { least: agents.inTest });
  expect(complaints(result)).toEqual([]);
});
