import * as fs from "node:fs";
import * as path from "node:path";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { type CanonicalPath, canonicalPath } from "../../src/identity/paths";
import { findRepository, type Repository } from "../../src/identity/repository";
import { isRefusal, type Refusal } from "../../src/kernel/refusal";
import { nodeGit } from "../../src/platform/git-node";
import { nodePlatform } from "../../src/platform/node/node";
import { commit, corpus, git, makeRepository, temporaryDirectory, write } from "./temporary";

const platform = nodePlatform();
const home = temporaryDirectory();
const root = path.join(home, "tree");
let repository: Repository;

beforeAll(async () => {
  makeRepository(root);
  commit(root);
  const library = makeRepository(path.join(home, "library"));
  write(path.join(library, "README"));
  git(library, "add", ".");
  commit(library);
  git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library, "vendor/library");
  git(root, "worktree", "add", "--quiet", path.join(root, "inner"), "-b", "inner");
  write(path.join(root, "inner/file"));
  commit(makeRepository(path.join(root, "nested")));
  write(path.join(root, "nested/file"));
  write(path.join(root, "broken/.git"), "gitdir: /does/not/exist\n");
  for (const file of ["src/a.ts", "src/deep/b.ts", "README"]) write(path.join(root, file));
  write(path.join(home, "outside/secret.txt"));
  const links: Record<string, string> = {
    "link-out": "../outside",
    "link-etc": "/etc",
    "link-up": "..",
    "link-to-link-out": "link-out",
    "link-git": ".git",
    "link-hooks": ".git/hooks",
    "link-dangling": "no-such-thing",
    "link-loop": "link-loop",
    "src/link-parent-out": "../../outside",
    "link-a": "src/a.ts",
    "link-src": "src",
    "link-chain": "link-src",
    "src/link-back": "..",
    "link-absolute": path.join(root, "src"),
    "link-round": "../round",
    "../round": "tree/src",
    "link-nested": "nested",
    "link-inner": "inner",
  };
  for (const [name, target] of Object.entries(links)) fs.symlinkSync(target, path.join(root, name));
  repository = await findRepository(platform, root, {}, nodeGit({}));
});

const resolve = (text: string, cwd = root, repo = repository) => canonicalPath(platform, repo, cwd, text);

async function accepted(text: string, cwd = root, repo = repository): Promise<CanonicalPath> {
  const result = await resolve(text, cwd, repo);
  if (isRefusal(result)) throw new Error(`${text}: ${result.code} ${result.message}`);
  return result;
}

async function refused(text: string, cwd = root, repo = repository): Promise<Refusal> {
  const result = await resolve(text, cwd, repo);
  if (!isRefusal(result)) throw new Error(`${text} became ${result.path}`);
  return result;
}

describe("paths that are refused", () => {
  it.each(corpus("paths-refused.txt"))("line $line", async ({ text, rest }) => {
    const result = await refused(text);
    expect(result.code).toBe(rest[0]);
    // Nothing a terminal would obey comes back in the message.
    expect(result.message).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });

  it("say why, where '..' follows something that does not exist", async () => {
    expect((await refused("missing/../src/a.ts")).message).toContain("does not exist");
  });

  it("also when they are empty", async () => {
    expect((await refused("")).code).toBe("E_USAGE");
  });

  it("say where to go when the path is in another repository", async () => {
    expect((await refused("vendor/library/README")).hint).toContain(path.join(root, "vendor/library"));
    const sibling = path.join(home, "library/README");
    expect((await refused(sibling)).message).toContain("outside the worktree");
  });

  it("include .git seen from a linked worktree, where it is a file", async () => {
    const inner = path.join(root, "inner");
    const repo = await findRepository(platform, inner, {}, nodeGit({}));
    for (const text of [".git", ".git/config", path.join(inner, ".git"), "../.git/config", "../README"]) {
      expect((await refused(text, inner, repo)).code).toBe("E_PATH_ESCAPE");
    }
  });

  it("include Git's directory under another name inside the tree", async () => {
    const apart = path.join(home, "apart");
    fs.mkdirSync(apart);
    git(apart, "init", "--quiet", `--separate-git-dir=${path.join(apart, "data")}`, ".");
    const repo = await findRepository(platform, apart, {}, nodeGit({}));
    expect((await refused("data/config", apart, repo)).code).toBe("E_PATH_ESCAPE");
    expect((await refused("data", apart, repo)).code).toBe("E_PATH_ESCAPE");
    expect((await accepted("data2", apart, repo)).path).toBe("data2");
  });
});

describe("paths that are accepted", () => {
  it.each(corpus("paths-accepted.txt"))("line $line", async ({ text, rest }) => {
    const typed = text.replaceAll("{ROOT}", root).replaceAll("{NAME}", path.basename(root));
    const result = await accepted(typed);
    expect(result.path).toBe(rest[0]);
    expect(result.isDirectory).toBe({ yes: true, no: false, unknown: null }[rest[1]!]);
    // It names the file the operating system would open.
    if (result.isDirectory !== null && fs.existsSync(path.resolve(root, typed))) {
      expect(result.absolutePath).toBe(fs.realpathSync.native(`${root}/${typed.replace(`${root}`, ".")}`));
    }
  });

  it("are seen from where the caller stands", async () => {
    expect((await accepted("a.ts", path.join(root, "src"))).path).toBe("src/a.ts");
    expect((await accepted("../README", path.join(root, "src"))).path).toBe("README");
    expect((await accepted("../a.ts", path.join(root, "src/deep"))).path).toBe("src/a.ts");
    // Standing in a directory reached through a link.
    expect((await accepted("a.ts", path.join(root, "link-src"))).path).toBe("src/a.ts");
    expect((await accepted("tree/src/a.ts", home)).path).toBe("src/a.ts");
  });

  it("belong to the worktree they are in", async () => {
    const inside = await accepted("inner/src/new");
    expect(inside).toMatchObject({ path: "src/new", worktreeRoot: path.join(root, "inner") });
    expect((await accepted("src/new")).worktreeRoot).toBe(root);
  });

  it("may have the worktree itself below some .git", async () => {
    const hidden = path.join(root, ".git/wt/hidden");
    git(root, "worktree", "add", "--quiet", hidden, "-b", "hidden");
    const repo = await findRepository(platform, hidden, {}, nodeGit({}));
    expect((await accepted("a", hidden, repo)).path).toBe("a");
    expect((await accepted(path.join(hidden, "a/b"), hidden, repo)).path).toBe("a/b");
    expect((await refused(".git", hidden, repo)).code).toBe("E_PATH_ESCAPE");
  });

  it("are folded where the repository ignores case", async () => {
    const folding: Repository = { ...repository, config: { ...repository.config, ignoreCase: true } };
    const fold = async (text: string) => (await accepted(text, root, folding)).path;
    expect(await fold("README")).toBe("readme");
    expect(await fold("Src/NEW.ts")).toBe("src/new.ts");
    expect(await fold("ÄRGER")).toBe("ärger");
    expect(await fold("ΟΔΟΣ/x")).toBe(await fold("οδος/x"));
    expect(await fold("οδος/x")).toBe(await fold("οδοσ/x"));
    expect(await fold("CAFE\u0301")).toBe("caf\u00e9");
    expect((await accepted("README")).path).toBe("README");
  });
});

describe("whatever is typed", () => {
  const name = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.constantFrom("..", ".", "", "src", "deep", "a.ts", "README", "inner", "nested"),
    },
    {
      weight: 2,
      arbitrary: fc.constantFrom(
        "link-src",
        "link-out",
        "link-up",
        "link-a",
        "link-round",
        "link-inner",
        "link-git",
      ),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom(".git", ".GIT", "git~1", "vendor", "library", "missing", "link-loop"),
    },
    { weight: 1, arbitrary: fc.string({ unit: "grapheme", maxLength: 6 }) },
    { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 4 }) },
  );
  const text = fc
    .tuple(fc.constantFrom("", "/", `${root}/`, "./", "../"), fc.array(name, { minLength: 1, maxLength: 7 }))
    .map(([start, names]) => start + names.join("/"));
  const cwd = fc.constantFrom(root, path.join(root, "src"), path.join(root, "link-src/deep"));

  it.each([false, true])(
    "a key stays inside its worktree and is its own key (ignoring case: %s)",
    async (ignoreCase) => {
      const repo: Repository = { ...repository, config: { ...repository.config, ignoreCase } };
      let kept = 0;
      await fc.assert(
        fc.asyncProperty(text, cwd, async (typed, from) => {
          const first = await resolve(typed, from, repo);
          if (isRefusal(first)) return;
          kept++;
          // Inside: lexically, and after the operating system has followed every link of what exists.
          const absolute = path.resolve(first.worktreeRoot, first.path);
          expect(`${absolute}/`.startsWith(`${first.worktreeRoot}/`)).toBe(true);
          expect(first.path.split("/")).not.toContain("..");
          expect(first.path.toLowerCase().split("/")).not.toContain(".git");
          let existing = first.absolutePath;
          while (!fs.existsSync(existing)) existing = path.dirname(existing);
          expect(fs.realpathSync(existing)).toBe(existing);
          expect(`${existing}/`.startsWith(`${first.worktreeRoot}/`)).toBe(true);
          // Its own key, from its own worktree.
          const own: Repository = { ...repo, worktreeRoot: first.worktreeRoot };
          const again = await resolve(`./${first.path}`, first.worktreeRoot, own);
          expect(again).toMatchObject({ path: first.path });
        }),
        { numRuns: 3_000, ...(process.env["TEST_SEED"] ? { seed: Number(process.env["TEST_SEED"]) } : {}) },
      );
      // A property that only ever saw refusals would prove nothing.
      expect(kept).toBeGreaterThan(300);
    },
  );
});
