import { printable } from "../../kernel/ids";
import type { GitResult } from "../../platform/git";
import { gitWords, isUnsent } from "../../platform/git-answers";
import type { PushOutcome } from "./remote";

/** What `git push --porcelain` said of each ref. */
export interface PushAnswer {
  /** Nothing can have reached the remote. */
  readonly isUnsent: boolean;
  /** The server got no whole pack, and so took nothing: what is here may be damaged. */
  readonly isUnpackable: boolean;
  of(ref: string, oid: string): PushOutcome;
}

/** The server never got so far as to answer, or its answer was lost. */
const UNTOLD = /remote failure|failed to report status|unexpected disconnect|hung up/i;

/** By a hook or a rule of the server's, and not because somebody else was faster. */
export function isDeclined(why: string): boolean {
  return /hook declined|protected branch/i.test(why);
}

export function readPushAnswer({ status, stdout, stderr }: GitResult): PushAnswer {
  const told = new Map<string, { flag: string; summary: string }>();
  for (const line of new TextDecoder().decode(stdout).split("\n")) {
    const [flag = "", spec = "", summary = ""] = line.split("\t");
    if (spec === "" || flag.length !== 1) continue;
    told.set(spec.slice(spec.indexOf(":") + 1), { flag, summary });
  }
  const said = gitWords(stderr);
  // Why a server's hook declined, only the server can say.
  const remote = gitWords(stderr.match(/^remote: *\S.*$/gm)?.join("\n") ?? "", 800);
  return {
    isUnpackable: told.size > 0 && [...told.values()].every(({ summary }) => /unpacker error/.test(summary)),
    isUnsent: status !== 0 && told.size === 0 && isUnsent(stderr),
    of(ref, oid) {
      const line = told.get(ref);
      if (line === undefined) return { kind: "unclear", oid, why: said };
      if (line.flag !== "!") return { kind: "done", oid };
      const why = printable([line.summary, ...(isDeclined(line.summary) ? [remote] : [])].join("; "), 1_000);
      return UNTOLD.test(line.summary) ? { kind: "unclear", oid, why } : { kind: "rejected", why };
    },
  };
}
