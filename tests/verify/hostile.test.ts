import { expect, it } from "vitest";
import { hostile } from "./hostile/layer";
import { complaints, prove } from "./layer";

it("hostile input never crashes, never hangs, and never changes what is true", async () => {
  const result = await prove(hostile, { least: hostile.inTest });
  expect(complaints(result)).toEqual([]);
}, 900_000);
