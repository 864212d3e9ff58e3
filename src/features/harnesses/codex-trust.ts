import type { Digest, Files } from "../../platform/platform";
import { callsUs } from "./command-line";
import { becauseOf } from "./hindrances";
import {
  type Layer,
  readableBytes,
  type SettingsSearch,
  type Table,
  tableIn,
  tomlTable,
} from "./settings-layers";
import { homeOf, type Site, shownPath } from "./sites";

/** Below /etc, on Linux and macOS. */
const REQUIREMENTS = "/etc/codex/requirements.toml";

/**
 * Why Codex does not run our hooks of one file, to be read after its name. It takes hooks of trusted projects only, in a
 * linked worktree those of the main one, and of all of them only those that a person has agreed to.
 */
export async function codexHindrances(look: SettingsSearch, site: Site): Promise<string[]> {
  const { files, grounds, mainRoot } = look;
  const home = homeOf("codex", grounds);
  const user = home === null ? null : await layer(files, `${home}/config.toml`, "user");
  const isTrusted = isProjectTrusted(user?.table ?? {}, grounds.root, mainRoot);
  const off = await switchedOff(look, user, isTrusted);
  if (off.length > 0) return off;
  if (site.level === "project" && !isTrusted)
    return [
      "does not trust this folder, and runs no hooks of it: start it there and answer its question with yes",
    ];
  const path = loadedFrom(site, look);
  const text = await textOf(files, path);
  const events = text === null ? {} : site.format === "toml" ? tomlEvents(text) : jsonEvents(text);
  if (events === null)
    return [
      `cannot read ${shownPath(path, grounds)}, and runs none of its hooks: it wants plain JSON there, without comments, and no names but "hooks" and "description"`,
    ];
  const hooks = ourHooks(events);
  if (hooks.length === 0 && path !== site.path)
    return [
      `takes the hooks of a linked worktree from ${path}, which has none of cotenant's: run 'cotenant agent install codex' in ${mainRoot}`,
    ];
  const states = tableIn(tableIn(user?.table ?? {}, "hooks"), "state");
  // With CODEX_HOME it follows links first, else it does not.
  const real = (await files.realPath(path)) ?? path;
  const stateOf = (hook: Hook) => ({
    ...tableIn(states, keyOf(real, hook)),
    ...tableIn(states, keyOf(path, hook)),
  });
  return disagreement(
    look,
    path,
    hooks.map((hook) => ({ ...hook, state: stateOf(hook) })),
  );
}

interface Hook {
  readonly event: string;
  readonly at: readonly [group: number, handler: number];
  readonly group: Table;
  readonly handler: Table;
}

function ourHooks(events: Table): Hook[] {
  return Object.entries(events).flatMap(([event, groups]) =>
    listOf(groups).flatMap((group, i) =>
      listOf(group["hooks"]).flatMap((handler, j): Hook[] => {
        const { command } = handler;
        const isOurs = typeof command === "string" && callsUs(command);
        return isOurs ? [{ event, at: [i, j], group, handler }] : [];
      }),
    ),
  );
}

function keyOf(path: string, { event, at }: Hook): string {
  return [path, codexLabel(event), ...at].join(":");
}

function disagreement(
  { digest, grounds }: SettingsSearch,
  path: string,
  hooks: readonly (Hook & { readonly state: Table })[],
): string[] {
  const off = hooks.filter(({ state }) => state["enabled"] === false);
  const agreed = ({ state }: (typeof hooks)[number]) => state["trusted_hash"];
  const unknown = hooks.filter((hook) => typeof agreed(hook) !== "string");
  const changed = hooks.filter(
    (hook) =>
      typeof agreed(hook) === "string" &&
      agreed(hook) !== codexHash(digest, hook.event, hook.group, hook.handler),
  );
  const said = [
    { what: "nobody has agreed to", which: unknown },
    { what: "changed since somebody agreed to", which: changed },
    { what: "somebody has switched off", which: off },
  ].filter(({ which }) => which.length > 0);
  if (said.length === 0) return [];
  const words = said.map(({ what, which }) => `${what} ${which.map(({ event }) => event).join(", ")}`);
  return [
    `does not run all hooks of ${shownPath(path, grounds)}: ${words.join("; ")}. Start it and say /hooks`,
  ];
}

/** What a person said of this folder counts before what they said of the main worktree. Nothing is inherited from above. */
function isProjectTrusted(user: Table, root: string | null, mainRoot: string | null): boolean {
  const projects = tableIn(user, "projects");
  const levels = [root, mainRoot].flatMap((one) =>
    one === null ? [] : [tableIn(projects, one)["trust_level"]],
  );
  return levels.find((level) => level !== undefined) === "trusted";
}

/** A linked worktree's hooks are the main one's. */
function loadedFrom({ level, path }: Site, { grounds: { root }, mainRoot }: SettingsSearch): string {
  if (level === "user" || root === null || mainRoot === null) return path;
  return mainRoot + path.slice(root.length);
}

/** `[features] hooks`, or as it was called before, by the last file that says anything; and what the machine demands. */
async function switchedOff(look: SettingsSearch, user: Layer | null, isTrusted: boolean): Promise<string[]> {
  const { files, grounds, machine } = look;
  const { root } = grounds;
  const layers = [
    await layer(files, `${machine}/etc/codex/config.toml`, "machine"),
    user,
    isTrusted && root !== null ? await layer(files, `${root}/.codex/config.toml`, "project") : null,
    await layer(files, `${machine}/etc/codex/managed_config.toml`, "machine"),
  ].filter((one) => one !== null);
  const required = await layer(files, machine + REQUIREMENTS, "machine");
  if (required !== null && required.table["allow_managed_hooks_only"] === true)
    return [becauseOf(required, "allow_managed_hooks_only = true", grounds)];
  for (const name of ["hooks", "codex_hooks"]) {
    const said = (one: Layer) => tableIn(one.table, "features")[name];
    const last =
      required !== null && said(required) === false
        ? required
        : layers.findLast((one) => said(one) !== undefined);
    if (last === undefined) continue;
    return said(last) === false ? [becauseOf(last, `[features] ${name} = false`, grounds)] : [];
  }
  return [];
}

async function layer(files: Files, path: string, of: Layer["of"]): Promise<Layer | null> {
  const text = await textOf(files, path);
  const table = text === null ? null : tomlTable(text);
  return table === null ? null : { path, of, table };
}

async function textOf(files: Files, path: string): Promise<string | null> {
  const bytes = await readableBytes(files, path);
  return bytes === null ? null : new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

function tomlEvents(text: string): Table | null {
  const table = tomlTable(text);
  if (table === null) return null;
  const { state: _, ...events } = tableIn(table, "hooks");
  return events;
}

/** As Codex reads it: more strictly than we do. */
function jsonEvents(text: string): Table | null {
  try {
    const { hooks, description: _, ...others } = JSON.parse(text) as Table;
    return Object.keys(others).length > 0 ? null : ((hooks ?? {}) as Table);
  } catch {
    return null;
  }
}

function listOf(value: unknown): readonly Table[] {
  return Array.isArray(value)
    ? value.map((one) => (typeof one === "object" && one !== null ? (one as Table) : {}))
    : [];
}

/** Codex's limits for a hook, in seconds. */
const USUAL_TIMEOUT = 600;
const END_TIMEOUT = 1;
const LONGEST_END = 3;
/** Events for which it overlooks a matcher. */
const WITHOUT_MATCHER = ["UserPromptSubmit", "Stop"];
const USUAL_CONTEXT_LIMIT = 2_500;

/**
 * What Codex remembers when a person agrees to a hook: a hash of the definition as it understands it, so that one hook has
 * the same in JSON and in TOML. As in its `hook_hash` (codex-rs/hooks/src/engine/discovery.rs): JSON without blanks, names
 * in alphabetical order, what is not given left out. `commandWindows`, which replaces the command there, is not looked at.
 */
export function codexHash(digest: Digest, event: string, group: Table, handler: Table): string {
  const { command, statusMessage, additionalContextLimit: limit } = handler;
  const { matcher } = group;
  const identity = {
    event_name: codexLabel(event),
    hooks: [
      {
        additionalContextLimit:
          limit === undefined || Number(limit) === USUAL_CONTEXT_LIMIT ? undefined : Number(limit),
        async: handler["async"] === true,
        command,
        statusMessage: statusMessage ?? undefined,
        timeout: timeoutOf(event, handler["timeout"]),
        type: "command",
      },
    ],
    matcher: WITHOUT_MATCHER.includes(event) ? undefined : (matcher ?? undefined),
  };
  return `sha256:${digest.sha256(JSON.stringify(identity))}`;
}

function timeoutOf(event: string, given: unknown): number {
  const isEnd = event === "SessionEnd";
  const wanted = given == null ? (isEnd ? END_TIMEOUT : USUAL_TIMEOUT) : Number(given);
  return Math.max(1, isEnd ? Math.min(wanted, LONGEST_END) : wanted);
}

/** An event's name in the key under which Codex remembers a hook. */
export function codexLabel(event: string): string {
  return event.replace(/\B[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
}
