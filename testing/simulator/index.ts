export { COUNTERS, Counters } from "./counters";
export type { FaultRule } from "./faults";
export type { FaultableKind, FaultCode } from "./operation";
export type { SimOptions } from "./options";
export { Prng } from "./prng";
export type { SimProcess } from "./process";
export type { Happening } from "./scheduler";
export { SimWorld } from "./world";
