import { describe, expect, it } from "vitest";
import { looksLikePatch, patchedPaths } from "../../src/features/guard/patch";

describe("the files that a patch names", () => {
  it("are those of every header, whatever is indented or ends with CR", () => {
    const patch = [
      "*** Begin Patch",
      "*** Add File: new file.txt",
      "+*** Update File: not-this",
      "*** Update File: src/a.ts\r",
      "*** Move to: src/b.ts",
      "@@",
      "-old",
      "+new",
      "  *** Delete File:  gone.ts  ",
      "*** End of File",
      "*** End Patch",
    ].join("\n");
    expect(patchedPaths(patch)).toEqual(["new file.txt", "src/a.ts", "src/b.ts", "gone.ts"]);
    expect(looksLikePatch(patch)).toBe(true);
  });

  it("are read from unified diffs as well", () => {
    const diff = [
      "diff --git a/x.ts b/y.ts",
      "rename from x.ts",
      "rename to y.ts",
      "--- a/x.ts\t2026-01-01",
      "+++ b/y.ts",
      "@@ -1 +1 @@",
      "--- /dev/null",
      "+++ b/n.ts",
    ].join("\n");
    expect(patchedPaths(diff)).toEqual(["x.ts", "y.ts", "n.ts"]);
    expect(looksLikePatch(diff)).toBe(true);
  });

  it("are none in plain text", () => {
    expect(patchedPaths("hello\nworld")).toEqual([]);
    expect(looksLikePatch("hello")).toBe(false);
  });
});
