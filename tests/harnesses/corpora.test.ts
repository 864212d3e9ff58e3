import * as fs from "node:fs";
import * as path from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { pluginText } from "../../src/features/harnesses/plugin";
import { HARNESS_NAMES, type HarnessName } from "../../src/identity/harness";
import { ROOT } from "../house/source";
import type { Stage, ToolCall } from "../support/harness/dialect";
import { OpencodePlugins } from "../support/harness/opencode-plugins";
import { loadPiExtension } from "../support/harness/pi-extension";
import { DIALECTS } from "../support/harness/player";
import { neutral, SAMPLE_DEEDS, sampleEvents } from "../support/harness/samples";
import { scratch } from "../support/scratch";

const CORPORA = path.join(ROOT, "testing/corpora/harness-events");
/** `TEST_RECORD=1 npx vitest run tests/harnesses/corpora.test.ts` writes them anew. */
const records = process.env["TEST_RECORD"] === "1";

function stage(): Stage {
  const room = scratch();
  const place = {
    root: path.join(room, "repo"),
    home: path.join(room, "home"),
    session: "5e551011-0000-4000-8000-000000000000",
  };
  fs.mkdirSync(place.root, { recursive: true });
  fs.mkdirSync(place.home);
  for (const name of ["README.md", "old.txt"]) fs.writeFileSync(path.join(place.root, name), "# Hi\n");
  return place;
}

/** What a plugin writes to the guard, while `play` has it run: its lines are told to keep it instead. */
async function keptOf(
  harness: HarnessName,
  place: Stage,
  name: string,
  play: (file: string) => Promise<void>,
): Promise<string[]> {
  const kept = path.join(place.home, "kept");
  const text = pluginText(harness, null, () => "").replace(
    /"line": "(?:[^"\\]|\\.)*"/g,
    `"line": ${JSON.stringify(`{ cat; echo; } >> '${kept}'`)}`,
  );
  const file = path.join(place.root, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, text);
  await play(file);
  const lines = fs.readFileSync(kept, "utf8").trimEnd().split("\n");
  return lines.map((line) => {
    const payload = JSON.parse(line) as { event: string };
    return neutral({ event: payload.event, borrowed: false, payload }, place);
  });
}

async function playOpencode(place: Stage): Promise<void> {
  const plugins = new OpencodePlugins(place);
  await plugins.load();
  await plugins.prompt("say hello");
  for (const deed of SAMPLE_DEEDS) {
    const call = DIALECTS.opencode.toolFor(deed, place);
    expect(await plugins.before(call)).toBeNull();
    await plugins.after(call, "ok");
  }
  for (const type of ["session.idle", "session.error", "session.deleted"] as const) await plugins.event(type);
}

async function playPi(place: Stage, file: string): Promise<void> {
  const fire = await loadPiExtension(place, file);
  const around = async ({ tool, input, id }: ToolCall) => {
    const event = { toolName: tool, toolCallId: id, input };
    expect(await fire("tool_call", event)).toBeUndefined();
    await fire("tool_result", { ...event, content: [], isError: false });
  };
  await fire("before_agent_start", { prompt: "say hello" });
  for (const deed of SAMPLE_DEEDS) await around(DIALECTS.pi.toolFor(deed, place));
  // Spellings that pi reads as other names than they are.
  for (const name of ["@odd.txt", "no\u00A0break.txt", `file://${place.root}/by%20url.txt`])
    await around({ tool: "write", input: { path: name, content: "x" }, id: "call_0" });
  for (const name of ["agent_settled", "session_shutdown"]) await fire(name, {});
}

async function eventsOf(harness: HarnessName): Promise<string[]> {
  const place = stage();
  if (harness === "opencode")
    return keptOf(harness, place, ".opencode/plugins/cotenant.js", () => playOpencode(place));
  if (harness === "pi")
    return keptOf(harness, place, ".pi/extensions/cotenant.js", (file) => playPi(place, file));
  return sampleEvents(DIALECTS[harness], place).map((sample) => neutral(sample, place));
}

describe("the recorded inputs of every harness", () => {
  beforeAll(() => {
    if (records) fs.mkdirSync(CORPORA, { recursive: true });
  });

  it.each(HARNESS_NAMES)("%s: what the rig plays is what is on record", async (harness) => {
    const file = path.join(CORPORA, `${harness}.jsonl`);
    const events = await eventsOf(harness);
    if (records) fs.writeFileSync(file, `${events.join("\n")}\n`);
    expect(events).toEqual(fs.readFileSync(file, "utf8").split("\n").slice(0, -1));
    expect(events.length).toBeGreaterThan(8);
  });
});
