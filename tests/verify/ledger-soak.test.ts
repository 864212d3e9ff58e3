import { beforeAll, expect, it } from "vitest";
import { needTool } from "../house/need-tool";
import { complaints, prove } from "./layer";
import { ledgerSoak } from "./ledger/soak-layer";

beforeAll(() => needTool("faketime"));

it("clones that are killed and cut off keep one holder for each issue, and every acknowledged change", async () => {
  const result = await prove(ledgerSoak, { least: ledgerSoak.inTest });
  expect(complaints(result)).toEqual([]);
}, 480_000);
