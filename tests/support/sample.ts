/**
 * Where there is much to try, `npm test` tries a sample, another one each time; all of it is tried by the layer "whole
 * tests" of `npm run verify`, which sets TEST_WHOLE.
 */
export const TRIES_ALL = process.env["TEST_WHOLE"] !== undefined;

/** `vitest.config.ts` chooses it and says so; TEST_SAMPLE_SEED repeats a run. */
export const SEED = Number(process.env["TEST_SAMPLE_SEED"] ?? 0);

/** Of a loop over 0, 1, 2, …: where a sample of one in `of` begins, and how far apart its members are. */
export function stride(of: number): { readonly first: number; readonly step: number } {
  return TRIES_ALL ? { first: 0, step: 1 } : { first: SEED % of, step: of };
}

/** One in `of`, and never none. */
export function sampleOf<T>(all: readonly T[], of: number): T[] {
  const { first, step } = stride(Math.min(of, Math.max(1, all.length)));
  return all.filter((_, index) => index % step === first);
}

/** As many, or in a sample one in `of`. */
export function amount(whole: number, of: number): number {
  return TRIES_ALL ? whole : Math.ceil(whole / of);
}
