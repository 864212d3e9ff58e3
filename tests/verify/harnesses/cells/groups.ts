import { borrowing } from "./borrowed";
import type { Cell, Group } from "./cell";
import { committing } from "./commits";
import { stopping, twoAtOnce, waiting } from "./contention";
import {
  dispatchedEvicted,
  dispatchedFailing,
  dispatchedFour,
  dispatchedKilled,
  dispatching,
} from "./dispatch";
import { listening } from "./events";
import { parenthood, siblings } from "./family";
import { killing, leasing } from "./leases";
import { pacing } from "./pace";
import { tryingReal } from "./real";
import { ruling } from "./rules";
import { trusting, uninstalling } from "./setup";
import { refusing } from "./shell";
import { worktrees } from "./worktrees";

/** In the order of the table. */
export const GROUPS: readonly Group[] = [
  leasing,
  refusing,
  waiting,
  stopping,
  twoAtOnce,
  parenthood,
  siblings,
  committing,
  ruling,
  killing,
  worktrees,
  borrowing,
  trusting,
  tryingReal,
  uninstalling,
  listening,
  pacing,
  dispatching,
  dispatchedFailing,
  dispatchedEvicted,
  dispatchedKilled,
  dispatchedFour,
];

export const CELLS: readonly Cell[] = GROUPS.flatMap(({ cells }) => cells);
