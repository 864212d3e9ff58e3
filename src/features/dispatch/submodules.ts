import { LONG_MS } from "../worktrees/git-calls";
import { askNames, gitIn } from "./branches";
import type { Station } from "./slots";

/** Submodules in which something is not committed. */
export async function dirtySubmodules(station: Station): Promise<string[]> {
  const args = ["status", "--porcelain=v2", "--ignore-submodules=none", "--untracked-files=no", "-z"];
  const entries = await askNames(station, args);
  return entries.flatMap((entry) => /^1 .. S.(?:M.|.U) (?:\S+ ){5}(.+)$/s.exec(entry)?.[1] ?? []);
}

/** What was committed since as a submodule: those that `.gitmodules` does not name, and those at a commit that none of their remotes is known to have. */
export async function strayLinks(
  station: Station,
  base: string,
): Promise<{ readonly unnamed: readonly string[]; readonly unpushed: readonly string[] }> {
  const { git, options } = gitIn(station);
  const args = [
    "diff",
    "--raw",
    "-z",
    "--no-abbrev",
    "--no-renames",
    "--ignore-submodules=none",
    `${base}...HEAD`,
  ];
  const said = await askNames(station, [...args, "--"]);
  const links = said.flatMap((path, at) => {
    const oid = /^:\d{6} 160000 [0-9a-f]+ ([0-9a-f]+) [AMT]$/.exec(said[at - 1] ?? "")?.[1];
    return oid === undefined ? [] : [{ path, oid }];
  });
  if (links.length === 0) return { unnamed: [], unpushed: [] };
  const named = await git.run(
    ["config", "-z", "--blob", "HEAD:.gitmodules", "--get-regexp", "^submodule\\..*\\.path$"],
    options,
  );
  const known = new TextDecoder()
    .decode(named.stdout)
    .split("\0")
    .map((one) => one.slice(one.indexOf("\n") + 1));
  const unpushed: string[] = [];
  for (const { path, oid } of links)
    if (known.includes(path) && (await isOnlyHere(station, path, oid))) unpushed.push(path);
  return { unnamed: links.map(({ path }) => path).filter((path) => !known.includes(path)), unpushed };
}

/** Whether a submodule that is checked out has this commit, and no branch of a remote of it does. */
async function isOnlyHere({ workspace, root }: Station, path: string, oid: string): Promise<boolean> {
  const { git, platform } = workspace.surroundings;
  const gitDir = `${root}/${path}/.git`;
  if ((await platform.files.lstat(gitDir)) === null) return false;
  const args = ["--git-dir", gitDir, "for-each-ref", "--count=1", `--contains=${oid}`, "refs/remotes/"];
  const { status, stdout } = await git.run(args, { cwd: root, timeoutMs: LONG_MS });
  return status === 0 && stdout.length === 0;
}
