import { CotenantError, errorFrom, fileFailure, orThrow } from "../errors/cotenant-error";
import { parseUlid, printable, type Ulid } from "../kernel/ids";
import { checkText, isGiven } from "../kernel/policy";
import { isRefusal } from "../kernel/refusal";
import { needsReason } from "../kernel/words";
import { checkRequestId } from "./local";
import type { Proof } from "./session";
import type { Workspace } from "./workspace";

/** What every operation that changes something takes. */
export interface ChangeRequest {
  /** A ULID: doing it again with the same id has the effect of doing it once. */
  readonly requestId?: string | undefined;
}

/** What every operation of a lease's holder takes. */
export interface HolderRequest extends ChangeRequest {
  /** Proves the lease, where the session has not kept the secret itself. Default: the file's, else COTENANT_SECRET. */
  readonly secret?: string | undefined;
  /** A file with the secret. */
  readonly secretFile?: string | undefined;
}

/** An id that is too old to be remembered is refused before anything is written. */
export function requestIdOf(workspace: Workspace, { requestId }: ChangeRequest): Ulid | null {
  if (requestId === undefined) return null;
  const id = parseUlid(requestId);
  if (isRefusal(id)) {
    throw new CotenantError("E_USAGE", `--request-id takes a ULID, not "${printable(requestId)}"`, {
      hint: "make a new one for each operation: 26 letters and digits that begin with the time",
    });
  }
  checkRequestId(id, workspace.surroundings.platform.clock.wallMs());
  return id;
}

/** The reason of an operation that needs one, before anything is written. */
export function givenReason(reason: string | null | undefined, what: string): string {
  const given = reason ?? null;
  if (!isGiven(given)) throw errorFrom(needsReason(what));
  orThrow(checkText(given, "reason"));
  return given;
}

export async function proofOf(workspace: Workspace, request: HolderRequest): Promise<Proof> {
  const { env } = workspace.surroundings;
  const { secret, secretFile } = request;
  return {
    secret:
      secret ??
      (secretFile === undefined ? env["COTENANT_SECRET"] || null : await secretIn(workspace, secretFile)),
    requestId: requestIdOf(workspace, request),
  };
}

async function secretIn({ surroundings }: Workspace, file: string): Promise<string> {
  const { platform, cwd } = surroundings;
  const path = file.startsWith("/") ? file : `${cwd}/${file}`;
  let bytes: Uint8Array | null;
  try {
    bytes = await platform.files.readFile(path);
  } catch (error) {
    if ((error as { code?: unknown }).code === "EISDIR")
      throw noSecret(`${printable(path, 300)} is a directory`);
    throw fileFailure(error, "reading the secret", path);
  }
  // What was given may be the secret itself: it is not repeated.
  if (bytes === null) throw noSecret("there is no file of the name that was given for the secret");
  return new TextDecoder().decode(bytes).trim();
}

function noSecret(why: string): CotenantError {
  return new CotenantError("E_USAGE", why, { hint: "--secret-file takes a file, never the secret itself" });
}
