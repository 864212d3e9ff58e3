import { familyLine, familyNote, isKnownByProcess } from "../../identity/family-note";
import type { Checking } from "./check";
import { whoIs } from "./who";
import { openWorktree, repositoryOf } from "./worktree";

/** Before a command: whatever it starts is to be known as this agent's, or as of its session. Put down once. */
export async function rememberFamily({ world, report }: Checking): Promise<void> {
  const { subagent, harness } = report;
  const isByProcess = isKnownByProcess({ name: harness });
  if (subagent === null && !isByProcess) return;
  const { files, digest } = world.platform;
  const repository = await repositoryOf(world, report.cwd ?? world.cwd);
  if (repository === null) return;
  const who = await whoIs(world, report);
  const { mainAgentId, sessionId } = who;
  const line = familyLine({ agentId: isByProcess ? mainAgentId : who.agentId, sessionId });
  const note = familyNote(repository.controlDir, digest, isByProcess ? who.holder : subagent!);
  const known = await files.readFile(note);
  if (known !== null && new TextDecoder().decode(known).includes(line)) return;
  try {
    const { store } = (await openWorktree(world, repository, who)).coordinator;
    await store.prepare();
    await files.makeDirectory(store.layout.guard, store.options.modes.directory);
    const fd = await files.open(note, "append", store.options.modes.file);
    try {
      await files.append(fd, new TextEncoder().encode(line));
    } finally {
      await files.close(fd);
    }
  } catch {
    // A full disk must not keep an agent from its own commands.
  }
}
