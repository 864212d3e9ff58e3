import { expect } from "vitest";
import type { Ran } from "./program";

/** Neither a stack trace nor the operating system's own words may reach a user. */
export function expectNoInnards(ran: Ran): void {
  // `data.errno` is where it belongs: for programs.
  const words = `${ran.stdout}\n${ran.stderr}`.replace(/"errno":"E[A-Z0-9]+"/g, "");
  expect(words, "a stack trace").not.toMatch(/^\s+at /m);
  expect(words, "a raw errno").not.toMatch(/\bE(?:ACCES|PERM|NOENT|NOTDIR|ISDIR|EXIST|ROFS|NOSPC|IO|LOOP)\b/);
  expect(words, "an internal error").not.toContain("E_INTERNAL");
}

/** A refusal as people see it: its exit status, its code, and what to do next; nothing on standard output. */
export function expectRefused(ran: Ran, status: number, code: string): void {
  expect({ status: ran.status, stderr: ran.stderr, stdout: ran.stdout }, ran.what).toEqual({
    status,
    stderr: expect.stringMatching(new RegExp(`^cotenant: .+ \\(${code}\\)\n {2}next: .+\n$`)),
    stdout: "",
  });
  expectNoInnards(ran);
}

/** A refusal as programs see it: one document with code, message, hint and data. */
export function expectJsonRefused(ran: Ran, status: number, code: string): void {
  expect(ran.status, `${ran}`).toBe(status);
  expect(ran.json).toEqual({
    ok: false,
    error: {
      code,
      message: expect.stringMatching(/./),
      hint: expect.stringMatching(/./),
      data: expect.any(Object),
    },
  });
  expect(ran.stdout).not.toMatch(/\\n\s+at /);
}
