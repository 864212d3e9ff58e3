import { beforeEach, describe, expect } from "vitest";
import { judgeRevisions } from "../../src/features/hooks/push";
import { FileJudge } from "../../src/features/hooks/push-files";
import { tipObjections } from "../../src/features/hooks/push-tips";
import { lineageAfter } from "../../src/features/issues/lineage";
import { mergeIssueFiles } from "../../src/features/issues/merge/files";
import { decodeIssue, encodeIssue, type Issue, newIssue } from "../../src/features/issues/model";
import { CommitReader } from "../../src/git/commits";
import type { Ulid } from "../../src/kernel/ids";
import type { LeaseKey } from "../../src/kernel/keys";
import type { Lease } from "../../src/kernel/lease";
import { git, platform, Scene } from "../git/scene";
import { oneIn } from "../support/one-in";

const it = oneIn(3);

const ID = "01M7F87SKQ7X3KZ979XRC4S87G" as Ulid;
const FILE = `.cotenant/issues/${ID}/issue.json`;
const LABELS = `.cotenant/issues/${ID}/labels.or-set.jsonl`;
const RESULTS = `.cotenant/gates/results/${ID}.jsonl`;
const CONFIG = ".cotenant/config.toml";
const CLAIMED = `x\n\nCotenant-Issue: ${ID}\nCotenant-Lease: L\nCotenant-Token: 1\nCotenant-Agent: agent:a`;
const AT = "2026-01-02T03:04:05.000Z";
const sha256 = (text: string) => platform.digest.sha256(text);

/** Versions of one issue, as cotenant would write them. */
const stamp = { version: 1, origin: "wt:1", lease_id: null, fencing_token: null, sequence: 1 };
const first = newIssue({ id: ID, title: "One", created_at: AT, created_by: "agent:a", stamp });
const changedFrom = (before: Issue, change: Partial<Issue>): Issue => ({
  ...before,
  ...change,
  stamp: {
    ...before.stamp,
    version: before.stamp.version + 1,
    lineage: lineageAfter([before], sha256),
  },
});
const second = changedFrom(first, { title: "Two" });
const third = changedFrom(second, { title: "Three" });
const fourth = changedFrom(third, { title: "Four" });
const invented = (change: Partial<Issue>) =>
  encodeIssue({ ...first, title: "Evil", state: "done", stamp: { ...stamp, origin: "" }, ...change });

type Content = string | { readonly mode: string; readonly text: string } | null;

/** The place that is pushed to: what it takes in, it has from then on. */
let scene: Scene;
let written: Set<string>;
let root: string;
let main: string;

const commit = (files: Readonly<Record<string, Content>>, parents: readonly string[], message = "x") => {
  scene.git("read-tree", parents[0] ?? "--empty");
  const lines = Object.entries(files).map(([path, content]) => {
    if (content === null) return `0 ${"0".repeat(40)}\t${path}`;
    const { mode, text } = typeof content === "string" ? { mode: "100644", text: content } : content;
    return `${mode} ${scene.feed(text, "hash-object", "-w", "--stdin")}\t${path}`;
  });
  scene.feed(lines.map((line) => `${line}\n`).join(""), "update-index", "--add", "--index-info");
  const tree = scene.git("write-tree");
  return scene.feed(message, "commit-tree", tree, ...parents.flatMap((parent) => ["-p", parent]));
};
const refOf = (ref: string) => scene.git("for-each-ref", "--format=%(objectname)", ref);
const push = async (to: string, ref = "refs/heads/main") => {
  const { objections } = await judgeRevisions(
    {
      git,
      place: { cwd: scene.root },
      coordinator: null,
      claims: {
        witness: {
          lease: (id) =>
            id !== "L"
              ? null
              : { key: `issue:${ID}`, token: 1, agentId: "agent:a", grantedAtMs: 0, endsAtMs: null },
          written: (_, digest) => (written.has(digest) ? "issue" : null),
        },
        held: new Map([[ID as string, { agentId: "agent:a", leaseId: "L" }]]),
      },
      digest: platform.digest,
      mode: "at_commit",
      keyOf: (path) => `file:${path}` as LeaseKey,
      pathRules: { rules: [], ignoreCase: false },
      pusher: null,
      hasHooks: true,
      branches: {
        allowed: ["develop"],
        main: { name: "main", branch: "main", commit: refOf("refs/heads/main") },
        mainNames: ["main"],
        requireHistory: true,
        howToAllow: () => "",
        allowedTips: async () => [refOf("refs/heads/develop")].filter((oid) => oid !== ""),
      },
    },
    { names: [to], options: ["--not", "--all", "--not"] },
    [{ ref, from: refOf(ref) || null, to }],
  );
  if (objections.length === 0) scene.git("update-ref", ref, to);
  return objections.map(({ code }) => code);
};
const TAKEN: string[] = [];
const REPLACED = ["E_LEASE_REQUIRED"];

beforeEach(async () => {
  scene = new Scene();
  written = new Set();
  root = commit({ "a.txt": "1", [CONFIG]: "# 1\n" }, []);
  scene.git("update-ref", "refs/heads/main", root);
  main = commit({ [FILE]: encodeIssue(first) }, [root]);
  expect(await push(main), "a new issue").toEqual(TAKEN);
  main = commit({ [FILE]: encodeIssue(second) }, [main], CLAIMED);
  expect(await push(main), "a claimed change").toEqual(TAKEN);
});

describe("an issue that a branch has", () => {
  it("is not replaced by creations of it that are merged, whatever else came in before", async () => {
    const [one, two] = [invented({ description: "x" }), invented({ assignee: "agent:e" })];
    const merged = mergeIssueFiles(null, one, two, { left: "l", right: "r", size: 7 }, sha256);
    const text = "text" in merged ? merged.text : "";
    const [left, right] = [commit({ [FILE]: one }, [root]), commit({ [FILE]: two }, [root])];
    const both = commit({ [FILE]: text }, [left, right]);
    const taken = commit({ [FILE]: text }, [main, both]);
    expect(await push(commit({ [FILE]: one }, [main, left]))).toEqual(REPLACED);
    expect(await push(taken), "in one push").toEqual(REPLACED);
    expect(await push(taken, "refs/heads/new"), "on a new branch").toEqual(REPLACED);
    expect(
      await push(commit({ [LABELS]: "{}\n" }, [main, commit({ [FILE]: one, [LABELS]: "{}\n" }, [root])])),
      "a file beside it",
    ).toEqual(REPLACED);
    // On a branch of its own it is new: nobody has it there.
    expect(await push(both, "refs/heads/own")).toEqual(TAKEN);
    expect(await push(taken), "in several pushes").toEqual(REPLACED);
    const own = commit({ "b.txt": "1" }, [root]);
    expect(await push(own, "refs/heads/other")).toEqual(TAKEN);
    expect(
      await push(commit({ [FILE]: text }, [own, taken]), "refs/heads/other"),
      "on one without it",
    ).toEqual(REPLACED);
  });

  it("is merged with what others made of it, and with what it began as", async () => {
    const mine = encodeIssue(changedFrom(first, { priority: "high" }));
    const changed = commit({ [FILE]: mine }, [scene.git("rev-parse", `${main}~1`)], CLAIMED);
    const sides = [encodeIssue(first), encodeIssue(second), mine] as const;
    const merged = mergeIssueFiles(...sides, { left: "l", right: "r", size: 7 }, sha256);
    const text = "text" in merged ? merged.text : "";
    expect("issue" in decodeIssue(text), text).toBe(true);
    expect(await push(commit({ [FILE]: text }, [main, changed]))).toEqual(TAKEN);
    expect(
      await push(
        commit({ [LABELS]: "{}\n" }, [
          refOf("refs/heads/main"),
          commit({ [FILE]: encodeIssue(first), [LABELS]: "{}\n" }, [root]),
        ]),
      ),
    ).toEqual(TAKEN);
  });

  it("is not set back to what was written once, in a commit or by a merge, nor made anything but a plain file", async () => {
    for (const issue of [first, second, third, fourth]) written.add(sha256(encodeIssue(issue)));
    const next = commit({ [FILE]: encodeIssue(third) }, [main]);
    expect(await push(next), "a newer version").toEqual(["E_LOCK_CONFLICT"]);
    scene.git("update-ref", "refs/heads/main", next);
    const text = encodeIssue(fourth);
    const cases: Record<string, Content> = {
      "the first version": encodeIssue(first),
      "the one before": encodeIssue(second),
      "a link": { mode: "120000", text },
      "a program": { mode: "100755", text },
      "a mark before it": `\ufeff${text}`,
      "a mark before it, and nothing else": `\ufeff${encodeIssue(third)}`,
      nothing: null,
    };
    for (const [name, content] of Object.entries(cases)) {
      expect(await push(commit({ [FILE]: content }, [next])), name).toEqual(REPLACED);
    }
    expect(await push(commit({ [FILE]: encodeIssue(first) }, [next], CLAIMED)), "by its holder").toEqual(
      TAKEN,
    );
    scene.git("update-ref", "refs/heads/main", next);
    const elsewhere = FILE.replace(ID, "01M7F87SKQ7X3KZ979XRC4S87H");
    expect(await push(commit({ [elsewhere]: invented({}) }, [next])), "under another name").toEqual(REPLACED);
    const older = commit({ [FILE]: encodeIssue(changedFrom(first, { title: "Old" })) }, [main], CLAIMED);
    expect(await push(commit({}, [older, next])), "by a merge that keeps an older one").toEqual(REPLACED);
    expect(
      await push(commit({ [FILE]: encodeIssue(second) }, [next, main])),
      "by a merge with the past",
    ).toEqual(REPLACED);
    expect(await push(commit({ [RESULTS]: '{"status":"passed"}\n' }, [next])), "a result of a gate").toEqual(
      REPLACED,
    );
    expect(
      await push(commit({ [RESULTS]: '{"status":"passed"}\n' }, [next], CLAIMED)),
      "a claimed one",
    ).toEqual(TAKEN);
  });
});

describe("settings", () => {
  it("come to no other branch under another name first, from the middle of a push, or in place of the main branch", async () => {
    const changed = commit({ [CONFIG]: "# 2\n" }, [main]);
    expect(await push(changed, "refs/heads/topic")).toEqual(["E_POLICY"]);
    expect(await push(changed, "refs/tags/t")).toEqual(TAKEN);
    expect(await push(changed, "refs/heads/topic"), "after a tag").toEqual(["E_POLICY"]);
    const middle = commit({ [CONFIG]: "# 3\n" }, [main]);
    expect(await push(commit({ [CONFIG]: "# 1\n" }, [middle]), "refs/heads/topic"), "put back").toEqual(
      TAKEN,
    );
    expect(await push(middle, "refs/heads/topic"), "the middle of it").toEqual(["E_POLICY"]);
    expect(await push(commit({ "b.txt": "1" }, [main]))).toEqual(TAKEN);
    expect(await push(changed), "without the main branch's tip").toEqual(["E_DIVERGED"]);
  });

  it("come along with the branches that may have them, and stay where they are", async () => {
    const developed = commit({ [CONFIG]: "# 2\n" }, [main]);
    expect(await push(developed, "refs/heads/develop")).toEqual(TAKEN);
    const topic = commit({ "b.txt": "1" }, [developed]);
    expect(await push(topic, "refs/heads/topic"), "from an allowed branch").toEqual(TAKEN);
    const goes = commit({ [CONFIG]: "# 4\n", "c.txt": "1" }, [main]);
    expect(await push(goes)).toEqual(TAKEN);
    expect(await push(commit({ "b.txt": "2" }, [topic]), "refs/heads/topic"), "as it had them").toEqual(
      TAKEN,
    );
    expect(
      await push(commit({ "d.txt": "1" }, [main]), "refs/heads/old"),
      "as the main branch had them",
    ).toEqual(TAKEN);
    expect(
      await push(commit({ "d.txt": "2" }, [developed]), "refs/heads/develop"),
      "while main goes on",
    ).toEqual(TAKEN);
  });
});

describe("a leased file", () => {
  it("is not taken back by a merge while somebody else holds it", async () => {
    const old = commit({ "b.txt": "1" }, [main]);
    const changed = commit({ "a.txt": "2", "new.txt": "1" }, [main]);
    const judged = async (to: string, pusher: string | null = null, holds = ["a.txt"]) => {
      const place = { cwd: scene.root };
      const held = holds.map((path) => ({
        key: `file:${path}`,
        reach: "repository",
        worktreeId: "wt:1",
        agentId: "agent:b",
        leaseId: "N",
      }));
      const files = new FileJudge({
        witness: { lease: () => null, written: () => null, paths: [] },
        held: held as unknown as Lease[],
        keyOf: (path) => `file:${path}` as LeaseKey,
        violations: new Map(),
        mode: "at_commit",
        pusher,
        hasHooks: true,
      });
      const reader = new CommitReader(git, place);
      const sources = { git, place, reader, digest: platform.digest };
      const testify = async () => ({ lease: () => null, written: () => null });
      const court = { sources, testify, keepers: [files], main: changed, judged: new Set([to]) };
      const objections = await tipObjections(court, { ref: "refs/heads/main", from: changed, to });
      return objections.map(({ code, path }) => `${code} ${path}`);
    };
    const taken = commit({}, [old, changed]);
    expect(await judged(taken)).toEqual(["E_LOCK_CONFLICT a.txt"]);
    expect(await judged(taken, null, ["a.txt", "new.txt"])).toEqual([
      "E_LOCK_CONFLICT a.txt",
      "E_LOCK_CONFLICT new.txt",
    ]);
    expect(await judged(taken, "agent:b"), "by its holder").toEqual([]);
    expect(await judged(taken, null, ["b.txt"]), "another file").toEqual([]);
    expect(await judged(taken, null, []), "nobody holds it").toEqual([]);
    const kept = commit({ "b.txt": "1" }, [changed, old]);
    expect(await judged(kept), "with the branch's side").toEqual([]);
  });
});
