import * as fs from "node:fs";
import * as path from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { pluginText } from "../../src/agents/opencode-plugin";
import { ROOT } from "../house/source";
import { PLAYED, type Played, type Stage } from "../support/harness/dialect";
import { OpencodePlugins } from "../support/harness/opencode-plugins";
import { DIALECTS } from "../support/harness/player";
import { neutral, SAMPLE_DEEDS, sampleEvents } from "../support/harness/samples";
import { scratch } from "../support/scratch";

const CORPORA = path.join(ROOT, "tests/corpora/harness-events");
/** `TEST_RECORD=1 npx vitest run tests/agents/corpora.test.ts` writes them anew. */
const records = process.env["TEST_RECORD"] === "1";

function stage(): Stage {
  const room = scratch();
  const place = {
    root: path.join(room, "repo"),
    home: path.join(room, "home"),
    session: "5e551011-0000-4000-8000-000000000000",
  };
  fs.mkdirSync(path.join(place.root, ".opencode/plugins"), { recursive: true });
  fs.mkdirSync(place.home);
  for (const name of ["README.md", "old.txt"]) fs.writeFileSync(path.join(place.root, name), "# Hi\n");
  return place;
}

/** What the plugin writes to the guard: its lines are told to keep it instead. */
async function opencodeEvents(place: Stage): Promise<string[]> {
  const kept = path.join(place.home, "kept");
  const text = pluginText(null).replace(
    /"line": "(?:[^"\\]|\\.)*"/g,
    `"line": ${JSON.stringify(`{ cat; echo; } >> '${kept}'`)}`,
  );
  fs.writeFileSync(path.join(place.root, ".opencode/plugins/cotenant.js"), text);
  const plugins = new OpencodePlugins(place);
  await plugins.load();
  await plugins.prompt("say hello");
  for (const deed of SAMPLE_DEEDS) {
    const call = DIALECTS.opencode.toolFor(deed, place);
    expect(await plugins.before(call)).toBeNull();
    await plugins.after(call, "ok");
  }
  for (const type of ["session.idle", "session.error", "session.deleted"] as const) await plugins.event(type);
  const lines = fs
    .readFileSync(kept, "utf8")
    .split("\n")
    .filter((line) => line !== "");
  return lines.map((line) => {
    const payload = JSON.parse(line) as { event: string };
    return neutral({ event: payload.event, borrowed: false, payload }, place);
  });
}

async function eventsOf(harness: Played): Promise<string[]> {
  const place = stage();
  if (harness === "opencode") return opencodeEvents(place);
  return sampleEvents(DIALECTS[harness], place).map((sample) => neutral(sample, place));
}

describe("the recorded inputs of every harness", () => {
  beforeAll(() => {
    if (records) fs.mkdirSync(CORPORA, { recursive: true });
  });

  it.each(PLAYED)("%s: what the rig plays is what is on record", async (harness) => {
    const file = path.join(CORPORA, `${harness}.jsonl`);
    const events = await eventsOf(harness);
    if (records) fs.writeFileSync(file, `${events.join("\n")}\n`);
    expect(events).toEqual(fs.readFileSync(file, "utf8").split("\n").slice(0, -1));
    expect(events.length).toBeGreaterThan(8);
  });
});
