import { CotenantError } from "./cotenant-error";

/** Somebody wrote a file between our look at it and our own write, which was left undone. */
export class Overtaken extends CotenantError {
  constructor(path: string) {
    super("E_STORE_BUSY", `somebody changed ${path} meanwhile`, {
      hint: "run the same command again",
      data: { path },
    });
  }
}

/** Looks, decides and writes anew as long as somebody else was quicker, a few times. */
export async function evenIfOvertaken<T>(act: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof Overtaken) || tries === 8) throw error;
    }
  }
}
