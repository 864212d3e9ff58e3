import type { Workspace } from "../../coordinator/workspace";
import { judgeRevisions } from "../../enforce/push";
import type { Revisions } from "../../enforce/pushed";
import { VIOLATION_KIND, violationFrom } from "../../enforce/violations";
import type { Command } from "../command";
import { asHook, type HookAnswer, PASSED, pushRefusal } from "../hooking";
import { testimony } from "../ledger";
import { readStdin } from "../stdin";

const NOTHING = /^0+$/;

export const command: Command = {
  usage: "hook pre-push <remote> <url>",
  about:
    "What Git's pre-push hook calls: every pushed change of an issue had its claim when it was committed.",
  flags: {},
  examples: ["cotenant hook pre-push origin ../hub.git < /dev/null"],
  words: { min: 0, max: 2 },
  remindsOfExpiry: false,
  enforcesConfig: true,
  run: (context, parsed) =>
    asHook(context, "pre-push", async (workspace) => {
      const mode = workspace.config.values["worktree.enforce_leases"];
      if (mode === "off") return PASSED;
      const [remote = ""] = parsed.words;
      const revisions = revisionsOf(await readStdin(1 << 20), remote);
      if (revisions === null) return PASSED;
      return answer(workspace, revisions, mode === "warn");
    }),
};

/** What is pushed and not there yet: `<local ref> <local id> <remote ref> <remote id>` on each line. */
export function revisionsOf(input: string, remote: string): Revisions | null {
  const tips: string[] = [];
  const known: string[] = [];
  for (const line of input.split("\n")) {
    const [, local = "", , there = ""] = line.split(" ");
    if (!/^[0-9a-f]{40,64}$/.test(local) || NOTHING.test(local)) continue;
    tips.push(local);
    if (/^[0-9a-f]{40,64}$/.test(there) && !NOTHING.test(there)) known.push(`^${there}`);
  }
  if (tips.length === 0) return null;
  // A remote by its address has no branches here that could tell what it has.
  const isNamed = /^[\w.-]+$/.test(remote);
  return {
    names: [...tips, ...known],
    options: isNamed ? ["--not", `--remotes=${remote}`, "--not"] : [],
  };
}

async function answer(workspace: Workspace, revisions: Revisions, isLenient: boolean): Promise<HookAnswer> {
  const { repository, surroundings, config, coordinator } = workspace;
  const { git, platform } = surroundings;
  const place = { cwd: repository.worktreeRoot };
  const present = await onlyKnown(workspace, revisions);
  const { objections } = await judgeRevisions(
    {
      git,
      place,
      coordinator,
      claims: await testimony(workspace, false),
      digest: platform.digest,
      mode: config.values["enforce.push"],
    },
    present,
  );
  const lines = await violationLines(workspace, present);
  if (objections.length === 0) return { isRefused: false, lines };
  const refused = pushRefusal("pre-push", objections);
  return isLenient
    ? { isRefused: false, lines: [...lines, ...refused, "  let through: worktree.enforce_leases = warn"] }
    : { isRefused: true, lines: [...lines, ...refused] };
}

/** What the remote has and this clone does not know of excludes nothing. */
async function onlyKnown(
  { surroundings, repository }: Workspace,
  { names, options }: Revisions,
): Promise<Revisions> {
  const kept: string[] = [];
  for (const name of names) {
    if (name.startsWith("^")) {
      const { status } = await surroundings.git.run(["cat-file", "-e", `${name.slice(1)}^{commit}`], {
        cwd: repository.worktreeRoot,
      });
      if (status !== 0) continue;
    }
    kept.push(name);
  }
  return { names: kept, options };
}

/** Whoever went around the hooks with --no-verify hears of it again, and so does whoever pushes it for them. */
async function violationLines(workspace: Workspace, revisions: Revisions): Promise<string[]> {
  const facts = await workspace.coordinator.facts({ kinds: [VIOLATION_KIND] });
  if (facts.size === 0) return [];
  const { git } = workspace.surroundings;
  const { stdout } = await git.run(
    ["rev-list", ...revisions.options, "--end-of-options", ...revisions.names],
    {
      cwd: workspace.repository.worktreeRoot,
    },
  );
  const pushed = new Set(new TextDecoder().decode(stdout).split("\n"));
  return [...facts.values()].flatMap(({ value }) => {
    const violation = violationFrom(value);
    if (violation === null || !pushed.has(violation.commit)) return [];
    const [first] = violation.objections;
    return [
      `cotenant pre-push: ${violation.commit.slice(0, 12)} was committed by ${violation.agentId} around the hooks: ${first?.message ?? ""}`,
    ];
  });
}
