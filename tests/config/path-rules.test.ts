import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { committedIn } from "../../src/config/committed";
import { inspectConfig, loadConfig } from "../../src/config/load";
import { pathRulesFrom, pathRulesIn } from "../../src/config/path-rules";
import { findRepository } from "../../src/identity/repository";
import type { Git } from "../../src/platform/git";
import { nodeGit } from "../../src/platform/git-node";
import { nodePlatform } from "../../src/platform/node/node";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const A = "agent:* never a";
const B = "agent:* never b";
const C = "human:* only c d";

let root: string;
let files: Record<"worktree" | "user" | "system", string>;
beforeEach(() => {
  root = scratch();
  files = {
    worktree: path.join(root, ".cotenant/config.toml"),
    user: path.join(root, "home/.config/cotenant/config.toml"),
    system: path.join(root, "etc/config.toml"),
  };
  for (const file of Object.values(files)) fs.mkdirSync(path.dirname(file), { recursive: true });
});

const question = (env: Record<string, string> = {}) => ({
  ...{ platform: nodePlatform(), env, worktreeRoot: root },
  home: path.join(root, "home"),
  systemDirectory: path.join(root, "etc"),
});
const set = (where: keyof typeof files, ...rules: string[]) =>
  fs.writeFileSync(files[where], `[policy]\npaths = ${JSON.stringify(rules)}\n`);
const bytes = (text: string) => new TextEncoder().encode(text);

describe("policy.paths", () => {
  it("has the rules of every source: none takes away what another says, and nothing of it needs trust", async () => {
    set("system", A);
    set("user", B);
    set("worktree", C, A);
    for (const env of [{}, { COTENANT_POLICY_PATHS: "" }, { COTENANT_POLICY_PATHS: "[]" }]) {
      const { values, untrusted, overruled } = await loadConfig(question(env));
      expect(values["policy.paths"]).toEqual([C, A, B]);
      expect([untrusted, overruled]).toEqual([[], []]);
    }
    const config = await loadConfig(question({ COTENANT_POLICY_PATHS: "ci:* never x" }));
    expect(pathRulesIn(config.layers).map(({ text, place, source }) => [text, place, source])).toEqual([
      ["ci:* never x", "COTENANT_POLICY_PATHS", "settings"],
      [C, ".cotenant/config.toml:2", "committed"],
      [A, ".cotenant/config.toml:2", "committed"],
      [B, `${files.user}:2`, "settings"],
      [A, `${files.system}:2`, "settings"],
    ]);
    set("worktree");
    expect((await loadConfig(question())).values["policy.paths"]).toEqual([B, A]);
  });

  it("is an error with file and line where a rule is none, and the others still hold for those who enforce", async () => {
    set("worktree", A, "agent:* nevr b", B);
    await expect(loadConfig(question())).rejects.toMatchObject({
      code: "E_CONFIG",
      message: expect.stringMatching(
        /config\.toml:2: policy\.paths has the entry "agent:\* nevr b", which has "nevr"/,
      ),
      hint: expect.stringContaining("mend or remove policy.paths in"),
    });
    const { config, problems } = await inspectConfig(question());
    expect(problems).toHaveLength(1);
    expect(config.values["policy.paths"]).toEqual([A, B]);
    await expect(loadConfig(question({ COTENANT_POLICY_PATHS: "x" }))).rejects.toMatchObject({
      code: "E_CONFIG",
    });
  });

  it("has at most a hundred rules of one source", async () => {
    const many = Array.from({ length: 101 }, (_, i) => `agent:* never f${i}`);
    set("user", ...many);
    await expect(loadConfig(question())).rejects.toMatchObject({
      message: expect.stringContaining("has more than 100 entries"),
    });
    expect((await inspectConfig(question())).config.values["policy.paths"]).toHaveLength(100);
  });

  it("is read from a commit's file whatever else is wrong in that", async () => {
    const read = (text: string) => pathRulesFrom("main:.cotenant/config.toml", bytes(text));
    const { rules, problems } = await read(`[policy]\npaths = ["${A}"]\n[later]\nkey = 1\n`);
    expect(problems).toEqual([]);
    expect(rules).toMatchObject([{ text: A, place: "main:.cotenant/config.toml:2", source: "committed" }]);
    for (const broken of [
      '[policy]\npaths = "x"\n',
      '[policy]\npaths = ["x"]\n',
      "policy = 1\n",
      "[policy\n",
    ])
      expect((await read(broken)).problems, broken).toHaveLength(1);
  });
});

describe("policy.paths of the last commit", () => {
  const platform = nodePlatform();
  let repo: TestRepo;
  let asked: string[];

  const write = (...texts: string[]) =>
    repo.write(".cotenant/config.toml", `[policy]\npaths = ${JSON.stringify(texts)}\n`);
  const commit = () => {
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "x");
  };
  /** The rules that hold, and what Git was asked for to know them. */
  async function held(env: Record<string, string> = {}): Promise<[string[], number]> {
    const git = nodeGit();
    const repository = await findRepository(platform, repo.root, {}, git);
    asked = [];
    const counting: Git = {
      run(args, options) {
        asked.push(args.join(" "));
        return git.run(args, options);
      },
    };
    const committed = committedIn(counting, repository, env);
    const { layers } = await loadConfig({
      ...{ platform, env: {}, home: null, worktreeRoot: repo.root, committed },
      systemDirectory: path.join(repo.root, "none"),
    });
    return [pathRulesIn(layers).map(({ text, place }) => `${text} (${place})`), asked.length];
  }

  it.each(["sha1", "sha256"])(
    "adds its rules while the file is changed, without a process where it is not (%s)",
    async (format) => {
      repo = TestRepo.make(undefined, format);
      write(A, B);
      expect(await held()).toEqual([[`${A} (.cotenant/config.toml:2)`, `${B} (.cotenant/config.toml:2)`], 0]);
      commit();
      expect((await held())[1]).toBe(0);
      write(B);
      expect(await held()).toEqual([
        [`${B} (.cotenant/config.toml:2)`, `${A} (HEAD:.cotenant/config.toml:2)`],
        1,
      ]);
      // Ends of lines as another machine has them are no change.
      repo.write(".cotenant/config.toml", `[policy]\r\npaths = ${JSON.stringify([A, B])}\r\n`);
      expect((await held())[1]).toBe(0);
      write(B);
      commit();
      expect(await held()).toEqual([[`${B} (.cotenant/config.toml:2)`], 0]);
    },
  );

  it("compares with the index that Git names, for a commit of some paths", async () => {
    repo = TestRepo.make();
    write(A);
    commit();
    fs.copyFileSync(path.join(repo.root, ".git/index"), path.join(repo.root, ".git/next-index"));
    write();
    repo.git("add", "--all");
    expect((await held())[0]).toEqual([]);
    for (const index of [".git/next-index", path.join(repo.root, ".git/next-index")])
      expect((await held({ GIT_INDEX_FILE: index }))[0]).toEqual([`${A} (HEAD:.cotenant/config.toml:2)`]);
  });
});
