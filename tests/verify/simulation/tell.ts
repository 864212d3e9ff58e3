import type { Verdict } from "./player";
import { type Deed, isDeed, type Story, type Trouble, type When } from "./story";

/** A story in words, and what became of it. */
export function tell(story: Story, verdict: Verdict): string {
  const lanes = story.lanes.map(
    ({ process, agent, session, worktree }, index) =>
      `  lane ${index}: ${agent}, session ${session}, ${worktree}, in process p${process} (${story.processes[process]!.space})`,
  );
  const events = story.events.map(
    (event) => `  ${isDeed(event) ? deedInWords(event) : troubleInWords(event)}`,
  );
  return [
    ...lanes,
    "what is done, and what strikes:",
    ...events,
    "what happened:",
    ...verdict.account.map((line) => `  ${line}`),
  ].join("\n");
}

function deedInWords(deed: Deed): string {
  const { id, lane, do: what, ...rest } = deed;
  return `#${id} lane ${lane}: ${what}${inWords(rest)}`;
}

function troubleInWords(trouble: Trouble): string {
  const { id, when, strike, ...rest } = trouble;
  return `#${id} ${strike}${inWords(rest)}, ${momentInWords(when)}`;
}

function momentInWords({ deed, on, nth, whose }: When): string {
  const of = whose === "its" ? "of its process" : "of anybody";
  return `right after ${on} ${nth} ${of} since #${deed}`;
}

function inWords(details: Readonly<Record<string, unknown>>): string {
  const words = Object.entries(details)
    .filter(([, value]) => value !== false && value !== null)
    .map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`);
  return words.length === 0 ? "" : ` (${words.join(", ")})`;
}
