import type { TestPlant } from "../test-plants";

export const PLANTS: readonly TestPlant[] = [];
