import * as fs from "node:fs";
import * as path from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it } from "vitest";
import { pluginText } from "../../src/features/harnesses/plugin";
import { scratch } from "../support/scratch";

const LINE =
  '{"waits":{"message":"a.txt is held by agent:other","until":"2026-11-17T12:00:00.000Z","waitMs":42}}';

/** What the plugin throws at a write, with a guard that is this shell command. */
async function thrown(command: string, client: object | undefined): Promise<string | null> {
  const root = scratch();
  const file = path.join(root, "cotenant.js");
  const line = `"line": ${JSON.stringify(command)}`;
  const text = pluginText("opencode", null, () => "").replace(/"line": "(?:[^"\\]|\\.)*"/g, () => line);
  fs.writeFileSync(file, text);
  const { Cotenant } = await import(pathToFileURL(file).href);
  const plugin = await Cotenant({ directory: root, client });
  const call = { tool: "write", sessionID: "s", callID: "c" };
  return plugin["tool.execute.before"](call, { args: { filePath: "a.txt" } }).then(
    () => null,
    (error: Error) => error.message,
  );
}

it("opencode's plugin shows who holds the file and until when, as soon as the guard waits", async () => {
  const shown: unknown[] = [];
  const client = { tui: { showToast: async (toast: object) => shown.push(toast) } };
  expect(await thrown(`echo '${LINE}' >&2; echo 'still held' >&2; exit 2`, client)).toBe("still held");
  const until = new Date("2026-11-17T12:00:00.000Z").toLocaleTimeString();
  const message = `a.txt is held by agent:other until ${until}`;
  expect(shown).toEqual([{ body: { message, variant: "info", duration: 42 } }]);
});

it.each([
  ["has no terminal", undefined],
  ["has another client", {}],
  [
    "throws",
    {
      tui: {
        showToast: () => {
          throw new Error("no TUI");
        },
      },
    },
  ],
  ["fails", { tui: { showToast: () => Promise.reject(new Error("no TUI")) } }],
])("a wait goes on where opencode %s", async (_, client) => {
  expect(await thrown(`echo '${LINE}' >&2; exit 0`, client)).toBeNull();
});
