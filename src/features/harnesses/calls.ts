import { callsUs } from "./command-line";
import { isOurUrl } from "./entries";
import { nodeValue, readJson } from "./json-text";
import type { Found } from "./plan";
import { type Table, tomlTable } from "./settings-layers";

/** A call of ours as a harness finds it in its settings. */
export interface Call {
  readonly event: string;
  /** Null for every tool. */
  readonly matcher: string | null;
  readonly command: string;
  /** Null for a line that a shell runs. */
  readonly args: readonly string[] | null;
  /** Where the harness asks itself, and with which headers; null where it runs the command. */
  readonly http: { readonly url: string; readonly headers: Readonly<Record<string, string>> } | null;
}

/** In the order of the file. A plugin has none: it makes them itself. */
export function callsIn({ site, file }: Pick<Found, "site" | "file">): Call[] {
  if (file.text === null || site.format === "plugin") return [];
  const events = site.format === "toml" ? tableOf(tomlTable(file.text)?.["hooks"]) : jsonEvents(file.text);
  return Object.entries(events).flatMap(([event, list]) =>
    Array.isArray(list) ? list.flatMap((item) => callsOf(event, item)) : [],
  );
}

function jsonEvents(text: string): Table {
  const json = readJson(text);
  if (typeof json === "string" || json.root === null) return {};
  return tableOf((nodeValue(json.root) as Table)["hooks"]);
}

function tableOf(value: unknown): Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Table) : {};
}

function callsOf(event: string, item: unknown): Call[] {
  const group = tableOf(item);
  const matcher = typeof group["matcher"] === "string" ? group["matcher"] : null;
  const handlers = Array.isArray(group["hooks"]) ? group["hooks"] : [group];
  return handlers.map(tableOf).flatMap((handler): Call[] => {
    const { url, headers } = handler;
    if (typeof url === "string" && isOurUrl(url))
      return [{ event, matcher, command: url, args: null, http: { url, headers: words(tableOf(headers)) } }];
    const command = handler["command"] ?? handler["bash"];
    if (typeof command !== "string") return [];
    const args = Array.isArray(handler["args"]) ? handler["args"].map(String) : null;
    return callsUs([command, ...(args ?? [])].join(" "))
      ? [{ event, matcher, command, args, http: null }]
      : [];
  });
}

function words(table: Table): Record<string, string> {
  return Object.fromEntries(Object.entries(table).map(([name, value]) => [name, String(value)]));
}
