import { createContext, runInContext } from "node:vm";
import type { RunWithin } from "../run-within";

let room: { act: () => void } | null = null;

export const nodeRunWithin: RunWithin = (mostMs, act) => {
  room ??= createContext({ act }) as { act: () => void };
  room.act = act;
  try {
    runInContext("act()", room, { timeout: mostMs });
    return true;
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
    return false;
  }
};
