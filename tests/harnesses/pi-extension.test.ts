import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { pluginText } from "../../src/features/harnesses/plugin";
import { loadPiExtension } from "../support/harness/pi-extension";
import { scratch } from "../support/scratch";

/** The extension with a guard that is this shell command. */
async function withGuard(command: string, context: object = {}) {
  const root = scratch();
  const line = `"line": ${JSON.stringify(command)}`;
  const file = path.join(root, "cotenant.js");
  fs.writeFileSync(
    file,
    pluginText("pi", null, () => "").replace(/"line": "(?:[^"\\]|\\.)*"/g, () => line),
  );
  const fire = await loadPiExtension({ root, home: root, session: "s" }, file, context);
  return { fire, root };
}

const call = (toolName: string, input: object) => ({ toolName, toolCallId: "c", input, content: [] });
const write = call("write", { path: "a.txt", content: "x" });

describe("pi's extension", () => {
  it("blocks what the guard refuses, with its reason, and nothing else", async () => {
    const { fire } = await withGuard("echo 'held by agent:other' >&2; exit 2");
    expect(await fire("tool_call", write)).toEqual({ block: true, reason: "held by agent:other" });
    expect(await fire("tool_call", call("read", { path: "a.txt" }))).toBeUndefined();
    expect(await (await withGuard("exit 2")).fire("tool_call", write)).toMatchObject({ block: true });
    for (const command of ["exit 0", "exit 1", "echo words"])
      expect(await (await withGuard(command)).fire("tool_call", write)).toBeUndefined();
  });

  it("adds what the guard says to what a command has printed", async () => {
    const { fire } = await withGuard("echo 'agent:other holds it'");
    const bash = { ...call("bash", { command: "true" }), content: [{ type: "text", text: "out" }] };
    expect(await fire("tool_result", bash)).toEqual({
      content: [
        { type: "text", text: "out" },
        { type: "text", text: "agent:other holds it" },
      ],
    });
    expect(await fire("tool_result", write)).toBeUndefined();
  });

  it("shows who holds the file and until when, as soon as the guard waits, and leaves it out of the reason", async () => {
    const waits = {
      message: "cotenant: a.txt is held by agent:other; the agent waits",
      until: "2026-11-17T12:00:00.000Z",
      waitMs: 9,
    };
    const line = JSON.stringify({ waits });
    const shown: unknown[][] = [];
    const ui = { setStatus: (...status: unknown[]) => shown.push(status) };
    const guard = `cat > input; printf '%s' '${line.slice(0, 30)}' >&2; sleep 0.1; echo '${line.slice(30)}' >&2; echo 'still held' >&2; exit 2`;
    const { fire, root } = await withGuard(guard, { hasUI: true, ui });
    expect(await fire("tool_call", write)).toEqual({ block: true, reason: "still held" });
    const until = new Date(waits.until).toLocaleTimeString();
    expect(shown).toEqual([
      ["cotenant", `${waits.message} until ${until}`],
      ["cotenant", undefined],
    ]);
    expect(JSON.parse(fs.readFileSync(path.join(root, "input"), "utf8"))).toMatchObject({ showsWaits: true });
    const silent = await withGuard(guard, { hasUI: false, ui });
    expect(await silent.fire("tool_call", write)).toEqual({ block: true, reason: "still held" });
    expect(shown).toHaveLength(2);
  });

  it("tells of a session's end, but not where extensions are only loaded anew", async () => {
    const { fire, root } = await withGuard("cat >> ended; exit 2");
    const ended = path.join(root, "ended");
    await fire("session_shutdown", { reason: "reload" });
    expect(fs.existsSync(ended)).toBe(false);
    await fire("session_shutdown", { reason: "quit" });
    expect(JSON.parse(fs.readFileSync(ended, "utf8"))).toEqual({
      event: "session_shutdown",
      sessionID: "s",
      directory: root,
    });
  });
});
