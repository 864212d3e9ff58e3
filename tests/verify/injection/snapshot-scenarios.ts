import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Scenario, Step } from "./scenarios";

type Make = (
  name: string,
  before: readonly Step[],
  agent: string,
  command: string,
  event: string | null,
  rest?: Partial<Scenario>,
) => Scenario;

const A = "agent:a";
const OTHER = "agent:zoe";

const SPOILT: readonly Step[] = [
  { file: "tree/a.txt", text: "spoilt\n" },
  { file: "tree/b.txt", text: null },
  { file: "tree/c.txt", text: "extra\n" },
];
/** A writer who looks at that part of the index makes it fit again, where it says too much after a death. */
const MENDED: Scenario["proofs"] = [
  [OTHER, "worktree lock", 0],
  [OTHER, "worktree unlock", 0],
];
const WHOLE: Scenario["proofs"] = [
  [OTHER, "doctor --strict --repair", 0],
  [OTHER, "doctor --strict", 0],
  [OTHER, "snapshot diff latest", 0],
  [OTHER, "history --all", 0],
];

/** Worktrees and snapshots: killed anywhere, each is invisible or complete. */
export function snapshotScenarios(scenario: Make, does: (agent: string, text: string) => Step): Scenario[] {
  const FILES: readonly Step[] = [
    { file: "tree/a.txt", text: "kept a\n" },
    { file: "tree/b.txt", text: "kept b\n" },
  ];
  const KEPT = [...FILES, does(A, "worktree lock --ttl 7200"), does(A, "snapshot --tag kept")];
  const rest = { leases: 0, isOneStep: false };
  return [
    scenario("worktree-lock", FILES, A, "worktree lock --ttl 7200", "claim.acquired", {
      proofs: [
        [A, "worktree renew", 0],
        [OTHER, "worktree lock", 1],
      ],
    }),
    scenario("worktree-access", FILES, A, "worktree access shared", "worktree.access", {
      ...rest,
      isRepeatable: true,
      proofs: [[OTHER, "worktree lock", 9]],
    }),
    scenario("snapshot", FILES, A, "snapshot", "snapshot.ready", {
      ...rest,
      isRepeatable: true,
      proofs: [...MENDED, ...WHOLE],
      sane: untouched,
    }),
    scenario("snapshot-once", FILES, A, "snapshot --request-id $request", "snapshot.ready", {
      ...rest,
      proofs: [...MENDED, ...WHOLE],
      sane: untouched,
    }),
    scenario("snapshot-next", [...KEPT, ...SPOILT], A, "snapshot", "snapshot.ready", {
      ...rest,
      isRepeatable: true,
      proofs: WHOLE,
      sane: spoilt,
    }),
    scenario("restore", KEPT, A, "restore kept --path ../back", "snapshot.restored", {
      ...rest,
      again: [9],
      proofs: WHOLE,
      sane: (repo) => untouched(repo) ?? backIsWhole(repo),
    }),
    scenario(
      "restore-inplace",
      [...KEPT, ...SPOILT, { agent: A, plan: "kept" }],
      A,
      "restore kept --inplace --run $plan",
      "snapshot.restored",
      // All may be in place, and only the last word missing.
      { ...rest, isRepeatable: true, again: [9], proofs: WHOLE, sane: eitherOr },
    ),
  ];
}

function textOf(repo: string, name: string): string | null {
  const path = join(repo, "tree", name);
  return existsSync(path) ? readFileSync(path, "utf8") : null;
}

function seen(repo: string): string {
  return ["a.txt", "b.txt", "c.txt"].map((name) => textOf(repo, name) ?? "-").join(" ");
}

function untouched(repo: string): string | null {
  const files = seen(repo);
  return files === "kept a\n kept b\n -" ? null : `files were changed: ${files}`;
}

function spoilt(repo: string): string | null {
  const files = seen(repo);
  return files === "spoilt\n - extra\n" ? null : `files were changed: ${files}`;
}

/** Every file is as it was or as it is to be, and never anything else. */
function eitherOr(repo: string): string | null {
  const isGood =
    ["kept a\n", "spoilt\n"].includes(textOf(repo, "a.txt") ?? "-") &&
    ["kept b\n", "-"].includes(textOf(repo, "b.txt") ?? "-") &&
    ["extra\n", "-"].includes(textOf(repo, "c.txt") ?? "-");
  return isGood ? null : `neither the old files nor the new ones: ${seen(repo)}`;
}

/** At its place there is a whole worktree, or nothing. */
function backIsWhole(repo: string): string | null {
  const back = join(repo, "../back");
  return !existsSync(back) || untouched(back) === null ? null : `half a worktree: ${seen(back)}`;
}
