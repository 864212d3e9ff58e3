import { expect } from "vitest";
import type { Ran } from "./program";

/** Neither a stack trace nor the operating system's own words may reach a user. */
export function expectNoInnards(ran: Ran): void {
  const words = `${wordsIn(ran.stdout)}\n${ran.stderr}`;
  expect(words, "a stack trace").not.toMatch(/^\s+at /m);
  expect(words, "a raw errno").not.toMatch(/\bE(?:ACCES|PERM|NOENT|NOTDIR|ISDIR|EXIST|ROFS|NOSPC|IO|LOOP)\b/);
  expect(words, "an internal error").not.toContain("E_INTERNAL");
}

/** A refusal for programs names the error in one place of its own, `error.data.errno`; nowhere else. */
function wordsIn(stdout: string): string {
  if (!stdout.startsWith('{"ok":false')) return stdout;
  const document = JSON.parse(stdout) as { error: { data: Record<string, unknown> } };
  delete document.error.data["errno"];
  return JSON.stringify(document);
}

/** A refusal as people see it: its exit status, its code, and what to do next; nothing on standard output. */
export function expectRefused(ran: Ran, status: number, code: string): void {
  expect({ status: ran.status, stderr: ran.stderr, stdout: ran.stdout }, ran.what).toEqual({
    status,
    stderr: expect.stringMatching(new RegExp(`^cotenant: .+ \\(${code}\\)\n {2}next: .+\n$`)),
    stdout: "",
  });
  expect(ran.stderr, "what a terminal obeys").not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/);
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
