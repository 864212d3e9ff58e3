import { expect, it } from "vitest";
import { fileFailure } from "../../src/errors/cotenant-error";

const HOSTILE = "a\u001b[2J\u202e/b\n";

it.each(["EACCES", "ENOSPC", "EROFS", "ENOENT", "ENAMETOOLONG"])(
  "shows no terminal what is in a path (%s), and keeps it for programs",
  (code) => {
    const { message, data } = fileFailure(
      Object.assign(new Error(code), { code }),
      "merging an issue",
      HOSTILE,
    );
    expect(message).toContain("a\ufffd[2J\ufffd/b\ufffd");
    expect(message).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(data).toEqual({ path: HOSTILE, errno: code });
  },
);
