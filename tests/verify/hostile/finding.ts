import { CotenantError } from "../../../src/errors/cotenant-error";
import { ERRORS, isErrorCode } from "../../../src/errors/registry";

/** Something that should not have happened. Thrown wherever it is seen; the layer reports it with its input. */
export class Finding extends Error {}

export function expectThat(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Finding(otherwise);
}

/** How a call ended: with a value, or with a refusal of ours. Anything else is a finding. */
export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly code: string };

export async function outcomeOf<T>(what: string, call: () => Promise<T> | T): Promise<Outcome<T>> {
  try {
    return { ok: true, value: await call() };
  } catch (error) {
    if (error instanceof Finding) throw error;
    if (!(error instanceof CotenantError))
      throw new Finding(
        `${what} threw a raw exception: ${error instanceof Error ? error.stack : String(error)}`,
      );
    expectThat(isErrorCode(error.code), `${what}: ${error.code} is no registered code`);
    expectThat(
      error.code !== "E_INTERNAL",
      `${what} failed with E_INTERNAL: ${error.message}; ${error.cause instanceof Error ? error.cause.stack : ""}`,
    );
    expectThat(ERRORS[error.code].exit === error.exit, `${what}: ${error.code} has a wrong exit status`);
    expectThat(
      error.message !== "" && error.hint !== "",
      `${what}: ${error.code} without words or a next step`,
    );
    return { ok: false, code: error.code };
  }
}

/** The value, where nothing but success is right. */
export async function successOf<T>(what: string, call: () => Promise<T> | T): Promise<T> {
  const outcome = await outcomeOf(what, call);
  if (!outcome.ok) throw new Finding(`${what} was refused with ${outcome.code}`);
  return outcome.value;
}
