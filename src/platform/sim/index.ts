export { COUNTERS, type CounterName, Counters } from "./counters";
export type { FaultRule, PlantedFault } from "./faults";
export type { FaultableKind, FaultCode, OperationKind } from "./operation";
export type { SimOptions } from "./options";
export { PosixError } from "./posix-error";
export { Prng } from "./prng";
export type { Namespaces, SimProcess } from "./process";
export type { TraceEntry } from "./trace";
export { type PowerCutOptions, type RunBounds, type RunResult, SimWorld, type SpawnOptions } from "./world";
