import { agents } from "./agents/layer";
import { daemonCrash } from "./daemon/crash-layer";
import { crowd } from "./daemon/crowd-layer";
import { daemonFrames } from "./daemon/frames-layer";
import { daemonKeeping } from "./daemon/keeping-layer";
import { daemonKills } from "./daemon/layer";
import { daemonMemory } from "./daemon/memory-layer";
import { disks } from "./disks/layer";
import { harnesses } from "./harnesses/layer";
import { hostile } from "./hostile/layer";
import { crash, error } from "./injection/layer";
import type { Layer } from "./layer";
import { ledgerSimulation } from "./ledger/simulation-layer";
import { ledgerSoak } from "./ledger/soak-layer";
import { linearizability } from "./linearizability/layer";
import { models } from "./models/layer";
import { planted } from "./planted/layer";
import { plantedTests } from "./planted/tests-layer";
import { properties } from "./properties/layer";
import { publishCrash } from "./publishing/crash-layer";
import { publishers } from "./publishing/crowd-layer";
import { simulation } from "./simulation/layer";
import { snapshots } from "./snapshots/layer";
import { clocks } from "./soak/clocks-layer";
import { soak } from "./soak/layer";
import { waiters } from "./soak/waiters-layer";
import { wholeTests } from "./whole/layer";

/** The whole programme, in the order of the table. */
export const LAYERS: readonly Layer[] = [
  models,
  properties,
  simulation,
  ledgerSimulation,
  ledgerSoak,
  crash,
  error,
  publishCrash,
  publishers,
  linearizability,
  daemonKills,
  daemonCrash,
  crowd,
  daemonMemory,
  daemonFrames,
  daemonKeeping,
  soak,
  waiters,
  clocks,
  disks,
  hostile,
  agents,
  harnesses,
  snapshots,
  planted,
  plantedTests,
  wholeTests,
];
