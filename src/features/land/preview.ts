import type { ObjectId } from "../../git/object-name";
import { type CandidateTools, candidateOn } from "./candidate";
import type { LandEntry } from "./entry";
import { type Destination, parkedOutcome, refusalRejection, rejectionOf, waitingOutcome } from "./outcomes";
import type { LandOutcome } from "./report";
import { refusalOf } from "./rules";

/** What would merge, one on top of the other, if every check passed. Nothing refers to what is made for it. */
export async function plannedOutcomes(
  tools: CandidateTools,
  queue: readonly LandEntry[],
  tip: ObjectId,
  destination: Destination,
): Promise<LandOutcome[]> {
  const outcomes: LandOutcome[] = [];
  let top = tip;
  for (const entry of queue) {
    const built = await candidateOn(tools, entry, top);
    const rejection = rejectionOf(entry, built, destination);
    if (rejection !== null) {
      // On others that have not landed either.
      const also = top !== tip && rejection.why === "conflict" ? ", or with what lands before it" : "";
      outcomes.push(parkedOutcome(entry, { ...rejection, message: `${rejection.message}${also}` }));
      continue;
    }
    if (built.kind === "contained") {
      outcomes.push({ ...waitingOutcome(entry), message: "nothing to land: the target has it already" });
      continue;
    }
    if (built.kind !== "candidate") continue;
    await tools.objects.reveal();
    const refusal = await refusalOf(tools.workspace, tools.objects, entry, { onto: top, ...built });
    if (refusal !== null) {
      outcomes.push(parkedOutcome(entry, refusalRejection(entry, refusal, destination)));
      continue;
    }
    top = built.commit;
    outcomes.push({ ...waitingOutcome(entry), message: "merges" });
  }
  return outcomes;
}
