import type { Plant } from "../plants";

const caughtBy = ["hostile"];

/** What the hostile layer must not miss. */
export const PLANTS: readonly Plant[] = [
  {
    name: "a log line's checksum is not verified",
    file: "src/store/envelope.ts",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
    from: "if (sum === undefined || sumOf(digest, `${lineText.slice(0, -SUFFIX_LENGTH)}}`) !== sum) return null;",
    to: "if (sum === undefined) return null;",
    caughtBy,
    inTest: true,
  },
  {
    name: "an index file's checksum is ignored",
    file: "src/store/sealed.ts",
    from: "if (sumOf(digest, body) !== whole.slice(OPENING.length, OPENING.length + SUM_LENGTH)) return null;",
    to: "",
    caughtBy,
  },
  {
    name: "zeros in the census mean that nothing is leased",
    file: "src/store/census.ts",
    from: "    if (view.getUint32(offset + 12) !== checkOf(",
    to: "    if (view.getUint32(offset + 12) !== 0 && view.getUint32(offset + 12) !== checkOf(",
    caughtBy,
  },
  {
    name: "the check for .git is case-sensitive",
    file: "src/kernel/keys.ts",
    from: "/^(\\.git|git~1)[. ]*(:.*)?$/i.test(part)",
    to: "/^(\\.git|git~1)[. ]*(:.*)?$/.test(part)",
    caughtBy,
    inTest: true,
  },
  {
    name: "an issue that is no JSON is not expected",
    file: "src/features/issues/document-text.ts",
    from: '    return { broken: /^<<<<<<< /m.test(text) ? "it has unresolved merge conflicts" : "it is not JSON" };',
    to: "    value = JSON.parse(text);",
    caughtBy,
  },
  {
    name: "recover skips the last whole line after damage",
    file: "src/store/replay.ts",
    from: "      if (salvage) salvaged();\n      return;",
    to: "      if (salvage && end < to) salvaged();\n      return;",
    caughtBy,
  },
  {
    name: "a newer log is taken for a damaged one",
    file: "src/store/replay.ts",
    from: '    if (line === null) refuseNewerText(lineText, "the log");\n',
    to: "    if (line === null) void refuseNewerText;\n",
    caughtBy,
  },
  {
    name: "what a harness sends is expected to be JSON",
    file: "src/features/guard/report.ts",
    from: "    return { why: (error as Error).message };",
    to: "    throw error;",
    caughtBy,
  },
  {
    name: "tokens may be any number",
    file: "src/kernel/bounds.ts",
    from: "export const LARGEST_COUNT = 2 ** 50;",
    to: "export const LARGEST_COUNT = Number.MAX_SAFE_INTEGER;",
    caughtBy,
  },
];
