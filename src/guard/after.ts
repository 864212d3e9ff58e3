import { ALLOWED, canTell, type Verdict } from "./answers";
import { background, trespassed } from "./background";
import { type Checking, hooksWord } from "./check";
import { placesOf, releaseCommitted, wake } from "./life";
import { newsFor } from "./news";
import { wishOf } from "./tools";
import { hasStopped } from "./traces";

/** After a tool, or when a person speaks: what the session has committed is given back, and it hears what is new. */
export async function after(checking: Checking): Promise<Verdict> {
  const { world, report } = checking;
  const places = await placesOf(world, report);
  const word = await hooksWord(
    checking,
    places.map(({ repository }) => repository),
  );
  const tells: string[] = word === null ? [] : [word];
  const wish = report.moment === "after" ? wishOf(report) : null;
  const command = wish?.kind === "shell" ? wish.command : null;
  if (wish?.kind === "shell") {
    const { compare } = await import("./shell/compare");
    const { shellDirectory } = await import("./shell/directory");
    const { violations, ruled } = await compare(checking, shellDirectory(checking, wish), wish.command);
    if (ruled !== null) tells.push(ruled);
    for (const { path, owner } of violations) tells.push(trespassed(path, owner, "your command ran"));
  }
  for (const place of places) {
    tells.push(...(await background(checking, place, command)));
    if (report.moment === "prompt" || (await hasStopped(place))) await wake(place);
    await releaseCommitted(place, null);
    const news = canTell(report) ? await newsFor(place) : null;
    if (news !== null) tells.push(news);
  }
  return tells.length === 0 ? ALLOWED : { isAllowed: true, tell: tells.join("\n") };
}
