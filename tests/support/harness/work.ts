import { Prng } from "../../../testing/simulator/prng";
import { changesOf, type Deed } from "./deeds";
import type { Player } from "./player";

/** What a scripted agent does by itself: edits of shared files, in turns, until it has done enough. */
export interface Job {
  readonly seed: number;
  readonly files: readonly string[];
  readonly deeds: number;
}

export interface Done {
  readonly done: number;
  readonly denied: number;
  readonly told: number;
  readonly failures: readonly string[];
  readonly reasons: readonly string[];
}

const DEEDS_PER_TURN = 3;

export async function work(player: Player, { seed, files, deeds }: Job): Promise<Done> {
  const chance = new Prng(seed, "work");
  const failures: string[] = [];
  const reasons: string[] = [];
  const touched = new Set<string>();
  const known: string[] = [];
  let [done, denied, told] = [0, 0, 0];
  for (let at = 0; at < deeds; at++) {
    if (at % DEEDS_PER_TURN === 0) await player.prompt("go on");
    // Most edits are of a file that the agent has had before, whoever has it now.
    const wanted = known.length > 0 && chance.chance(0.4) ? known : files;
    const deed = deedOf(chance, wanted, `${seed} ${at}\n`);
    const outcome = await player.act(deed);
    if (outcome.is === "done") {
      done++;
      for (const { file } of changesOf(deed)) {
        touched.add(file);
        known.push(file);
      }
    } else {
      denied++;
      reasons.push(outcome.reason);
    }
    told += outcome.told.length;
    failures.push(...outcome.failures);
    if ((at + 1) % DEEDS_PER_TURN !== 0 && !outcome.endsTurn) continue;
    // What is committed is anybody's again.
    if (touched.size > 0) await player.act({ do: "shell", command: commitOf([...touched]) });
    touched.clear();
    await player.stop();
  }
  return { done, denied, told, failures: failures.slice(0, 20), reasons: reasons.slice(0, 20) };
}

function commitOf(files: readonly string[]): string {
  const who = "-c user.name=agent -c user.email=agent@example.invalid";
  return `git ${who} commit --quiet --no-gpg-sign --message work -- ${files.join(" ")}`;
}

function deedOf(chance: Prng, files: readonly string[], content: string): Deed {
  const file = chance.pick(files);
  if (chance.chance(0.2)) {
    const other = chance.pick(files);
    const both = other === file ? [file] : [file, other];
    return { do: "patch", changes: both.map((name) => ({ file: name, content })) };
  }
  return { do: chance.chance(0.5) ? "edit" : "write", file, content };
}
