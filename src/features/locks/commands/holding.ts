import type { Flag, Parsed } from "../../../cli/grammar/command";
import { checkRequestId } from "../../../coordinator/local";
import type { Proof } from "../../../coordinator/session";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError, errorFrom, fileFailure, orThrow } from "../../../errors/cotenant-error";
import { parseUlid, printable, type Ulid } from "../../../kernel/ids";
import { checkText, isGiven } from "../../../kernel/policy";
import { isRefusal } from "../../../kernel/refusal";
import { needsReason } from "../../../kernel/words";

/** For every command that changes a lease. */
export const CHANGE_FLAGS: Readonly<Record<string, Flag>> = {
  "request-id": {
    value: "<ulid>",
    meaning: "doing it again with the same id has the effect of doing it once",
  },
};

/** For commands of a lease's holder. */
export const HOLDER_FLAGS: Readonly<Record<string, Flag>> = {
  ...CHANGE_FLAGS,
  "secret-file": {
    value: "<file>",
    completes: "path",
    meaning: "prove the lease with the secret in this file (also COTENANT_SECRET)",
  },
  token: { value: "<file>", meaning: "old name of --secret-file", insteadUse: "secret-file" },
};

/** One that is too old to be remembered is refused here already: nothing is written for it. */
export function requestId(workspace: Workspace, parsed: Parsed): Ulid | null {
  const text = parsed.text("request-id");
  if (text === undefined) return null;
  const id = parseUlid(text);
  if (isRefusal(id)) {
    throw new CotenantError("E_USAGE", `--request-id takes a ULID, not "${printable(text)}"`, {
      hint: "make a new one for each operation: 26 letters and digits that begin with the time",
    });
  }
  checkRequestId(id, workspace.surroundings.platform.clock.wallMs());
  return id;
}

/** The reason of an operation that needs one, before anything is written. */
export function givenReason(parsed: Parsed, what: string): string {
  const reason = parsed.text("reason") ?? null;
  if (!isGiven(reason)) throw errorFrom(needsReason(what));
  orThrow(checkText(reason, "reason"));
  return reason;
}

/** A secret is taken from a file or the environment, never from the command line itself. */
export async function proof(workspace: Workspace, parsed: Parsed): Promise<Proof> {
  const { env, platform, cwd } = workspace.surroundings;
  if (parsed.text("token") !== undefined)
    workspace.warnings.push("--token is an old name: use --secret-file");
  const file = parsed.text("secret-file") ?? parsed.text("token");
  if (file === undefined)
    return { secret: env["COTENANT_SECRET"] || null, requestId: requestId(workspace, parsed) };
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
  return { secret: new TextDecoder().decode(bytes).trim(), requestId: requestId(workspace, parsed) };
}

function noSecret(why: string): CotenantError {
  return new CotenantError("E_USAGE", why, { hint: "--secret-file takes a file, never the secret itself" });
}
