import { CotenantError } from "../errors/cotenant-error";
import { ERRORS, type ErrorCode } from "../errors/registry";

/** JSON-RPC 2.0. The first five codes are the standard's, the others ours. */
export const RPC_ERRORS = {
  parse: -32700,
  invalidRequest: -32600,
  unknownMethod: -32601,
  invalidParams: -32602,
  internal: -32603,
  /** Refused with one of our codes, which is in `data`. */
  refused: -32000,
  /** It came to be decided after its deadline, and was not begun. */
  tooLate: -32001,
  /** Somebody who has not shown the token. */
  stranger: -32002,
  /** The daemon is on its way out, or has too many clients. */
  unavailable: -32003,
  /** Not begun, and not for this daemon: the client does it itself. */
  notHere: -32004,
} as const;

export type RequestId = number | string | null;

export interface RpcRequest {
  readonly id: RequestId;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** Without an id: nobody waits for an answer. */
  readonly isNotice: boolean;
}

/** A failure with a code of the protocol. */
export class RpcError extends Error {
  readonly code: number;
  readonly data: Readonly<Record<string, unknown>> | undefined;

  constructor(code: number, message: string, data?: Readonly<Record<string, unknown>>) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

export function readRequest(text: string): RpcRequest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new RpcError(RPC_ERRORS.parse, "this is not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new RpcError(RPC_ERRORS.invalidRequest, "a request is an object; batches are not taken");
  const { jsonrpc, id, method, params } = value as Record<string, unknown>;
  if (jsonrpc !== "2.0") throw new RpcError(RPC_ERRORS.invalidRequest, 'jsonrpc must be "2.0"');
  if (id !== undefined && id !== null && typeof id !== "number" && typeof id !== "string")
    throw new RpcError(RPC_ERRORS.invalidRequest, "id must be a number or a string");
  if (typeof method !== "string") throw new RpcError(RPC_ERRORS.invalidRequest, "method must be a string");
  if (params !== undefined && (typeof params !== "object" || params === null || Array.isArray(params)))
    throw new RpcError(RPC_ERRORS.invalidParams, "params must be an object");
  return {
    id: (id as RequestId | undefined) ?? null,
    method,
    params: (params ?? {}) as Record<string, unknown>,
    isNotice: id === undefined,
  };
}

/** The id of a request that could not be read as one, where it has one. */
export function idIn(text: string): RequestId {
  try {
    const { id } = JSON.parse(text) as { id?: unknown };
    return typeof id === "number" || typeof id === "string" ? id : null;
  } catch {
    return null;
  }
}

export function errorToWire(error: unknown): { code: number; message: string; data?: unknown } {
  if (error instanceof RpcError)
    return {
      code: error.code,
      message: error.message,
      ...(error.data === undefined ? {} : { data: error.data }),
    };
  if (error instanceof CotenantError)
    return { code: RPC_ERRORS.refused, message: error.message, data: error.toJSON() };
  const message = error instanceof Error ? error.message : String(error);
  return { code: RPC_ERRORS.internal, message };
}

/** What the daemon's error is to its client: the same that it would have met without the daemon. */
export function errorFromWire(value: unknown): Error {
  const { code, message, data } = (value ?? {}) as { code?: unknown; message?: unknown; data?: unknown };
  const said = typeof message === "string" ? message : "the daemon gave no reason";
  if (code === RPC_ERRORS.refused && typeof data === "object" && data !== null) {
    const { code: name, hint, data: more } = data as Record<string, unknown>;
    if (typeof name === "string" && Object.hasOwn(ERRORS, name))
      return new CotenantError(name as ErrorCode, said, {
        ...(typeof hint === "string" ? { hint } : {}),
        ...(typeof more === "object" && more !== null ? { data: more as Record<string, unknown> } : {}),
      });
  }
  return new RpcError(typeof code === "number" ? code : RPC_ERRORS.internal, said);
}
