import type { LogCheck } from "../../testing/checker/log-check";
import type { Verdict } from "../../testing/checker/verdict";
import type { Books } from "./books";
import type { Crew } from "./crew";
import type { Picture } from "./view";

/** What a view is drawn from: agents by what they say, leases by what the log says. */
export interface Scene extends Pick<Picture, "seed" | "elapsedMs" | "lengthMs" | "phase" | "events"> {
  readonly crew: Crew | null;
  readonly log: LogCheck | null;
  readonly books: Books;
  readonly verdict: Verdict;
  label(key: string): string;
}

export function takePicture(scene: Scene): Picture {
  const { seed, elapsedMs, lengthMs, phase, events, crew, log, books, verdict, label } = scene;
  const agents = (crew?.agents ?? []).map(({ name, pid, state, doing }) => ({
    name,
    pid,
    state,
    doing: doing.what,
    about: doing.keys.map(label).join(", "),
  }));
  const leases = [...(log?.open.values() ?? [])].map(({ key, token, agentId, pids }) => ({
    label: label(key),
    token,
    who: agentId.slice(agentId.indexOf(":") + 1),
    isDead: [...pids].every((pid) => crew?.dead.has(pid)),
  }));
  const { counts } = books;
  const { checked, violations } = verdict;
  return { seed, elapsedMs, lengthMs, phase, agents, leases, counts, checked, violations, events };
}
