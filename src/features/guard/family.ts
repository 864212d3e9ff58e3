import { familyLine, familyNote, isKnownByProcess } from "../../identity/family-note";
import { type Checking, directoryOf } from "./check";
import { appendText } from "./small-files";
import { whoIs } from "./who";
import { openWorktree, repositoryOf } from "./worktree";

/** Before a command: whatever it starts is to be known as this agent's, or as of its session. Put down once. */
export async function rememberFamily(checking: Checking): Promise<void> {
  const { world, report } = checking;
  const { subagent, harness } = report;
  const isByProcess = isKnownByProcess({ name: harness });
  if (subagent === null && !isByProcess) return;
  const { files, digest } = world.platform;
  const repository = await repositoryOf(world, directoryOf(checking));
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
    await appendText(files, note, line, store.options.modes.file);
  } catch {
    // A full disk must not keep an agent from its own commands.
  }
}
