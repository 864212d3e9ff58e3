import { printable } from "../kernel/ids";
import type { GitResult } from "../platform/git";
import { gitWords, isUnsent } from "../platform/git-answers";
import type { PushOutcome } from "./remote";

/** What `git push --porcelain` said of each ref. */
export interface PushAnswer {
  /** Nothing can have reached the remote. */
  readonly isUnsent: boolean;
  of(ref: string, oid: string): PushOutcome;
}

/** The server never got so far as to answer, or its answer was lost. */
const UNTOLD = /remote failure|failed to report status|unexpected disconnect|hung up/i;

export function readPushAnswer({ status, stdout, stderr }: GitResult): PushAnswer {
  const told = new Map<string, { flag: string; summary: string }>();
  for (const line of new TextDecoder().decode(stdout).split("\n")) {
    const [flag = "", spec = "", summary = ""] = line.split("\t");
    if (spec === "" || flag.length !== 1) continue;
    told.set(spec.slice(spec.indexOf(":") + 1), { flag, summary });
  }
  const said = gitWords(stderr);
  return {
    isUnsent: status !== 0 && told.size === 0 && isUnsent(stderr),
    of(ref, oid) {
      const line = told.get(ref);
      if (line === undefined) return { kind: "unclear", oid, why: said };
      if (line.flag !== "!") return { kind: "done", oid };
      const why = printable(line.summary, 200);
      return UNTOLD.test(line.summary) ? { kind: "unclear", oid, why } : { kind: "rejected", why };
    },
  };
}
