import type { PlantedBug } from "../plants";
import { PLANTS as CONFIG } from "./by-area/config";
import { PLANTS as COORDINATION } from "./by-area/coordination";
import { PLANTS as DAEMON } from "./by-area/daemon";
import { PLANTS as DAEMON_MEMORY } from "./by-area/daemon-memory";
import { PLANTS as DISPATCH } from "./by-area/dispatch";
import { PLANTS as GUARD } from "./by-area/guard";
import { PLANTS as GUARD_DAEMON } from "./by-area/guard-daemon";
import { PLANTS as HOOKS } from "./by-area/hooks";
import { PLANTS as ISSUES } from "./by-area/issues";
import { PLANTS as LAND } from "./by-area/land";
import { PLANTS as LEDGER } from "./by-area/ledger";
import { PLANTS as MANAGERS } from "./by-area/managers";
import { PLANTS as PATH_RULES } from "./by-area/path-rules";
import { PLANTS as PUBLISH } from "./by-area/publish";
import { PLANTS as STORE } from "./by-area/store";
import { PLANTS as WORKTREES } from "./by-area/worktrees";

/** A bug that a plain test notices: by name, so that a test that fails for another reason does not count. */
export interface TestPlant extends PlantedBug {
  /** The test's file. */
  readonly test: string;
  /** Part of the test's name. */
  readonly named: string;
}

export const TEST_PLANTS: readonly TestPlant[] = [
  ...CONFIG,
  ...COORDINATION,
  ...DAEMON,
  ...DAEMON_MEMORY,
  ...DISPATCH,
  ...GUARD,
  ...GUARD_DAEMON,
  ...HOOKS,
  ...ISSUES,
  ...LAND,
  ...LEDGER,
  ...MANAGERS,
  ...PATH_RULES,
  ...PUBLISH,
  ...STORE,
  ...WORKTREES,
];
