import type { Git } from "../../platform/git";
import { parseTrailers } from "./trailers";

/** More commits than this nobody looks through: the newest have the highest tokens. */
const MOST_COMMITS = 5_000;

/** The tokens that commits of any branch say they were made under. Whoever wrote one may have written anything. */
export async function committedTokens(git: Git, cwd: string): Promise<number[]> {
  const args = ["log", "--all", `--max-count=${MOST_COMMITS}`, "--grep=^Cotenant-Token:", "--format=%B%x00"];
  const { status, stdout } = await git.run(args, { cwd, timeoutMs: 60_000 });
  if (status !== 0) return [];
  return new TextDecoder()
    .decode(stdout)
    .split("\0")
    .flatMap((message) => {
      const { issues, leases } = parseTrailers(message);
      return [...issues, ...leases].flatMap(({ token }) => token ?? []);
    });
}
