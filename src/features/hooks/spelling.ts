import type { PathChange } from "../../git/commit-text";
import { parseUlid, printable } from "../../kernel/ids";
import { isRefusal } from "../../kernel/refusal";
import type { Objection } from "./commit-rules";

const NAMES = [
  ".cotenant",
  "config.toml",
  "worktree.json",
  "issues",
  "issue.json",
  "comments.jsonl",
  "deps.or-set.jsonl",
  "labels.or-set.jsonl",
  "gates",
  "registry.json",
  "results",
  "events",
];
/** `.cotenant/issues/<id>/issue.json`: no name of ours is deeper. */
const DEPTH = 4;

/**
 * The name that this one becomes where upper and lower case are one, if it is a name of cotenant's in another spelling:
 * on such a disk it takes the place of the real one, past everything that guards that. Null for every other path.
 */
export function respelt(path: string): string | null {
  const segments = path.split("/");
  if (segments[0]!.toLowerCase() !== ".cotenant") return null;
  const real = segments.map((one, depth) => (depth < DEPTH ? spelling(one) : one)).join("/");
  return real === path ? null : real;
}

function spelling(segment: string): string {
  const lower = segment.toLowerCase();
  if (NAMES.includes(lower)) return lower;
  const [, name = segment, extension = ""] = /^(.*?)(\.jsonl)?$/i.exec(segment) ?? [];
  const id = parseUlid(name.toUpperCase());
  return isRefusal(id) ? segment : `${id}${extension.toLowerCase()}`;
}

/** Against names that stand for cotenant's own on some disks. Taking one out is what anybody would want. */
export function spellingObjections(changes: readonly PathChange[]): Objection[] {
  return changes.flatMap(({ path, status }): Objection[] => {
    const real = status === "deleted" ? null : respelt(path);
    if (real === null) return [];
    return [
      {
        code: "E_POLICY",
        path,
        message: `${printable(path, 200)} is ${printable(real, 200)} on disks where upper and lower case are one`,
        hint: `take it out of the commit, or change ${printable(real, 200)} itself`,
        owner: null,
        leaseId: null,
      },
    ];
  });
}
