import type { Session } from "../../coordinator/session";
import type { Fact, FactName } from "../../kernel/facts";
import { entriesIn, entryName, entryToFact, type LandEntry, type Underway } from "./entry";
import type { Rejection } from "./speculation";

const MOST_PATHS = 20;

/** What is written of an entry when no branch moves. False where it has left the queue meanwhile. */
async function note(
  session: Session,
  entry: LandEntry,
  type: string,
  payload: Readonly<Record<string, unknown>>,
  facts: ReadonlyMap<FactName, Fact | null>,
): Promise<boolean> {
  const name = entryName(entry.entryId);
  const written = await session.write<true>([], {
    about: `land ${entry.target}`,
    facts: [name],
    body: async ({ facts: seen }) => {
      const [now] = entriesIn(seen);
      if (now?.state !== "queued") return null;
      return {
        type,
        payload: { target: entry.target, entry_id: entry.entryId, branch: entry.branch, ...payload },
        facts,
        answer: true,
      };
    },
  });
  return !written.replayed && written.answer === true;
}

/** Puts an entry aside; the queue goes on without it. */
export function park(session: Session, entry: LandEntry, rejection: Rejection, at: string): Promise<boolean> {
  const { why, message, hint, output, outputFile } = rejection;
  const paths = rejection.paths.slice(0, MOST_PATHS).map((path) => path.slice(0, 300));
  const parked = {
    why,
    message: message.slice(0, 1_000),
    hint: hint.slice(0, 1_000),
    paths,
    output,
    outputFile,
    at,
  };
  const aside: LandEntry = { ...entry, state: "parked", underway: null, parked };
  const payload = { why, message: parked.message, paths, path_count: rejection.paths.length };
  return note(
    session,
    entry,
    "land.parked",
    payload,
    new Map([[entryName(entry.entryId), entryToFact(aside)]]),
  );
}

/** It is on its target without a branch having moved here: it was there already, or only the remote has it. */
export function noteLanded(
  session: Session,
  entry: LandEntry,
  payload: Readonly<Record<string, unknown>>,
  facts: ReadonlyMap<FactName, Fact | null>,
): Promise<boolean> {
  return note(session, entry, "land.landed", payload, facts);
}

/** Before a push: whoever finds it asks the remote what became of it. Null once the remote has refused it. */
export function noteUnderway(
  session: Session,
  entry: LandEntry,
  underway: Underway | null,
): Promise<boolean> {
  const fact = entryToFact({ ...entry, underway });
  return note(session, entry, "land.pushing", { ...underway }, new Map([[entryName(entry.entryId), fact]]));
}
