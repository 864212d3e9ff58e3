import { layoutOf } from "../../../src/store/layout";
import type { Happening } from "../../../testing/simulator";
import { CONTROL } from "../../store/stage";
import type { MomentKind } from "./story";

const layout = layoutOf(CONTROL);
const SYNCS: ReadonlySet<string> = new Set(["datasync", "datasyncInBackground", "sync", "syncDirectory"]);
const CHANGES: ReadonlySet<string> = new Set([
  "writeAt",
  "rename",
  "unlink",
  "makeDirectory",
  "removeDirectory",
]);

/** Whether an operation is of the kind that a trouble waits for. */
export function isAt(moment: MomentKind, { kind, path }: Happening): boolean {
  switch (moment) {
    case "step":
      return true;
    case "lock":
      return (kind === "lock" || kind === "tryLock") && path === layout.mutex;
    case "unlock":
      return kind === "unlock" && path === layout.mutex;
    case "append":
      return kind === "append" && path === layout.log;
    case "log sync":
      return SYNCS.has(kind) && path === layout.log;
    case "any sync":
      return SYNCS.has(kind);
    case "index change":
      return CHANGES.has(kind) && path.startsWith(`${layout.index}/`);
    case "applied":
      return kind === "writeAt" && path === layout.applied;
    case "census read":
      return kind === "read" && path.startsWith(`${layout.index}/census-`);
    case "rename":
      return kind === "rename" && path === layout.log;
    case "ticket":
      return (kind === "rename" || kind === "unlink") && path.startsWith(`${layout.queue}/`);
    case "secret":
      return CHANGES.has(kind) && path.startsWith(`${layout.secrets}/`);
  }
}
