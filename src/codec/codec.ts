import type { JsonObject } from "./json";

export interface Reader<T> {
  /** Null for what is not understood. */
  decode(wire: unknown): T | null;
}

export interface Codec<T> extends Reader<T> {
  encode(value: T): JsonObject;
}

/** The type of a record is written down once, as its schema. */
export type Decoded<R> = R extends Reader<infer T> ? Readonly<T> : never;
