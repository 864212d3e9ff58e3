import { withoutBlock } from "../../identity/text-block";
import { tomlBlock } from "./codex-toml";
import { isBareFrame, readSettings, taken } from "./json-settings";
import type { Found } from "./plan";
import { CHANGED_BY_HAND, isAsWritten, isPlugin } from "./plugin";

/** What becomes of one file when ours goes out of it. `after` is null where the file goes, too. */
export interface Removal {
  readonly found: Found;
  readonly action: "removed" | "taken_out";
  readonly after: string | null;
}

export interface Left {
  readonly path: string;
  readonly why: string;
}

export interface Removals {
  readonly removals: readonly Removal[];
  /** What stays, and why. */
  readonly left: readonly Left[];
  /** Those without anything of ours: whatever else was done for them, by somebody who did not finish, goes. */
  readonly absent: readonly Found[];
}

export function planUninstall(
  all: readonly Found[],
  { shared, digestOf }: { readonly shared: boolean; readonly digestOf: (text: string) => string },
): Removals {
  const removals: Removal[] = [];
  const left: Left[] = [];
  const absent: Found[] = [];
  for (const found of all) {
    const { site, file, record } = found;
    const outcome = outcomeOf(found, digestOf);
    if (outcome.is === "absent") absent.push(found);
    else if (outcome.is === "left") left.push({ path: site.path, why: outcome.why });
    else if (
      site.level === "project" &&
      !shared &&
      (found.standing === "tracked" || record?.isShared === true)
    )
      left.push({
        path: site.path,
        why: "it belongs to the project; add --shared to change it for everybody",
      });
    else {
      const { after } = outcome;
      removals.push({ found, action: after === null ? "removed" : "taken_out", after });
      if (outcome.remains !== null) left.push({ path: file.path, why: outcome.remains });
    }
  }
  return { removals, left, absent };
}

type Outcome =
  | { readonly is: "absent" }
  | { readonly is: "left"; readonly why: string }
  | { readonly is: "out"; readonly after: string | null; readonly remains: string | null };

const BY_HAND = "somebody wrote calls of cotenant by hand; they stay";

function outcomeOf({ site, file, record }: Found, digestOf: (text: string) => string): Outcome {
  const { text } = file;
  // What cannot be read cannot have been read by the harness either; but ours may be in it.
  if (text === null)
    return file.why === null || record === null ? { is: "absent" } : { is: "left", why: file.why };
  if (site.format === "plugin") {
    if (!isPlugin(text)) return { is: "absent" };
    if (!isAsWritten(text, digestOf))
      return { is: "left", why: `${CHANGED_BY_HAND}; keep elsewhere what you need of it, then delete it` };
    return { is: "out", after: null, remains: null };
  }
  if (site.format === "toml") {
    const block = tomlBlock(text);
    if (block === null) return { is: "absent" };
    if (block === "damaged")
      return {
        is: "left",
        why: "our lines in it are damaged; remove them by hand, from '# >>> cotenant' to '# <<< cotenant'",
      };
    return { is: "out", after: withoutBlock(block), remains: null };
  }
  const read = readSettings(text);
  if ("why" in read)
    return record !== null || /guard (?:check|stop|end)/.test(text)
      ? { is: "left", why: `${read.why}; mend it, then run the same command again` }
      : { is: "absent" };
  const byHand = read.entries.some(({ isByHand }) => isByHand);
  if (read.entries.every(({ isByHand }) => isByHand))
    return byHand ? { is: "left", why: BY_HAND } : { is: "absent" };
  const out = taken(text, record?.placements ?? [], digestOf);
  if ("why" in out) return { is: "left", why: out.why };
  const isGone = (record?.isMade === true || site.isOwn) && isBareFrame(out.text);
  return { is: "out", after: isGone ? null : out.text, remains: byHand ? BY_HAND : null };
}
