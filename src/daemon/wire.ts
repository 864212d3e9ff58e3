import { toCamelCase, toSnakeCase } from "../codec/names";

/** Requests and answers of the coordinator's contract are plain values, and what somebody put into them stays as it is. */
const DATA: ReadonlySet<string> = new Set(["data", "payload"]);

export function toWire(value: unknown): unknown {
  return toSnakeCase(value, DATA);
}

export function fromWire(value: unknown): unknown {
  return toCamelCase(value, DATA);
}
