import { printable } from "../../../kernel/ids";
import { type IndexState, surveyIndex } from "../../../store/index-survey";
import { type Check, error, note, ok } from "../finding";
import { many, some } from "../words";

const HARMLESS: Readonly<Record<Exclude<IndexState, "fits" | "wrong">, string>> = {
  absent: "there is no index; the next writer makes it from the log",
  "other-boot": "the index is from an earlier boot; the next writer makes it anew from the log",
  unfinished: "the index is half made; the next writer makes it anew from the log",
  "other-log": "the index does not belong to this log; the next writer makes it anew",
  behind: "the index lacks the newest lines of the log; the next writer adds them",
};

/** The log replayed in memory against the small files that commands go by. */
export const indexCheck: Check = {
  name: "index",
  async look({ platform, layout, hasStore }) {
    if (!hasStore) return [ok("there is no index yet")];
    const { state, differences, leases } = await surveyIndex(platform, layout);
    if (state === "fits")
      return [ok(`the index says what the log says (${many(leases, "lease")})`, { leases })];
    if (state !== "wrong") return [note(HARMLESS[state], null, { state })];
    const shown = differences.map((text) => printable(text, 200));
    return [
      error(
        "E_LOG_CORRUPT",
        `the index does not say what the log says: ${some(shown)}`,
        `move ${layout.index} somewhere else; the next writer makes it anew from the log, and nothing is lost`,
        { state, differences: shown.slice(0, 20), path: layout.index },
      ),
    ];
  },
};
