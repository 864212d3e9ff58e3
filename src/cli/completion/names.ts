import { AGENT_KEYS } from "../../config/agent-file";
import { CONFIG_KEYS, CONFIG_SECTIONS, isConfigKey, settingOf } from "../../config/schema";
import { Workspace } from "../../coordinator/workspace";
import { isFound } from "../../features/issues/resolve";
import { shortId } from "../../features/issues/short-id";
import { listWorktrees } from "../../identity/worktree-list";
import { foldCrockford, printable } from "../../kernel/ids";
import { thisMachine } from "../../platform/node/this-machine";
import type { Completes } from "../grammar/command";
import { timeLeft } from "../terminal/render";
import type { Candidate } from "./candidates";

type Kind = Exclude<Completes, "path" | "directory">;

/** More than this nobody reads, and each issue is a file. */
const MOST = 200;

/** Names of things that are there, as far as they begin with what was typed. Reads only. */
export async function namesOf(
  kind: Kind,
  positionals: readonly string[],
  current: string,
): Promise<readonly Candidate[]> {
  if (kind === "setting") return settings();
  if (kind === "setting-value") return settingValues(positionals[0] ?? "");
  const machine = { ...thisMachine(), isTerminal: false };
  const workspace = await Workspace.open(machine, { despiteConfig: "mend", doing: "complete" });
  if (kind === "issue") return issues(workspace, current);
  if (kind === "worktree") return worktrees(workspace);
  if (kind === "gate") return gates(workspace);
  const names = kind === "agent" ? await agents(workspace) : await leases(workspace, kind);
  return names.filter(({ value }) => value.startsWith(current)).slice(0, MOST);
}

function settings(): Candidate[] {
  return [
    ...CONFIG_KEYS.map((key) => ({ value: key as string, about: settingOf(key).meaning })),
    ...AGENT_KEYS.map((value) => ({ value, about: "about you; with --global" })),
    ...CONFIG_SECTIONS.map((value) => ({ value, about: `all of [${value}]` })),
  ].map(({ value, about }) => ({ value, about: printable(about, 80) }));
}

function settingValues(key: string): Candidate[] {
  if (!isConfigKey(key)) return [];
  const setting = settingOf(key);
  const values = setting.type === "enum" ? setting.values : setting.type === "bool" ? ["true", "false"] : [];
  return values.map((value) => ({ value, about: value === String(setting.default) ? "the default" : "" }));
}

/** Short ids, and whole ones for those who have begun to type one. The newest first. */
async function issues(workspace: Workspace, current: string): Promise<Candidate[]> {
  const { issuesIn } = await import("../../features/issues/desk");
  const reader = await issuesIn(workspace);
  const ids = [...(await reader.ids())].sort().reverse();
  const typed = foldCrockford(current);
  const short = ids.filter((id) => id.startsWith(typed, id.length - 16)).slice(0, MOST);
  const found = short.length > 0 ? short : ids.filter((id) => id.startsWith(typed)).slice(0, MOST);
  const candidates: Candidate[] = [];
  for (const id of found) {
    const read = await reader.find(id);
    if (isFound(read) && read.isDeleted) continue;
    const about = isFound(read) ? printable(read.issue.title, 60) : "";
    const value = short.length > 0 ? shortId(id, ids) : id;
    // What was typed in capitals goes on in capitals, or a shell takes it for something else.
    candidates.push({ value: value.startsWith(current) ? value : value.toUpperCase(), about });
  }
  return candidates;
}

async function gates({ repository, surroundings }: Workspace): Promise<Candidate[]> {
  const { inspectRegistry } = await import("../../features/gates/registry");
  const reading = await inspectRegistry(surroundings.platform, repository.worktreeRoot);
  if ("broken" in reading) return [];
  return [...reading.registry.gates.values()].map(({ key, title }) => ({
    value: key,
    about: printable(title, 60),
  }));
}

async function worktrees(workspace: Workspace): Promise<Candidate[]> {
  const { platform, git } = workspace.surroundings;
  const all = await listWorktrees(platform, git, workspace.repository);
  return all.flatMap(({ worktreeId, root }) =>
    worktreeId === null ? [] : [{ value: worktreeId as string, about: printable(root, 80) }],
  );
}

async function agents(workspace: Workspace): Promise<Candidate[]> {
  const held = (await workspace.coordinator.list()).map(({ lease }) => lease.agentId as string);
  const waiting = (await workspace.coordinator.waiters()).map(({ agentId }) => agentId as string);
  const own = await workspace.agent().then(
    ({ agentId }) => [agentId as string],
    () => [],
  );
  return [...new Set([...own, ...held, ...waiting])].sort().map((value) => ({ value, about: "" }));
}

async function leases(
  workspace: Workspace,
  kind: "key" | "lease" | "resource" | "ref",
): Promise<Candidate[]> {
  const all = await workspace.coordinator.list();
  return all
    .filter(({ lease }) => kind === "key" || kind === "lease" || lease.key.startsWith(`${kind}:`))
    .map((status) => ({
      value: kind === "key" || kind === "lease" ? status.lease.key : status.lease.key.slice(kind.length + 1),
      about: `${status.lease.agentId}, ${timeLeft(status)}`,
    }))
    .filter(({ value }) => printable(value, value.length) === value);
}
