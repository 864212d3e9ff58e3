import { isObject } from "../../codec/json";
import { CotenantError, during } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import type { Platform } from "../../platform/platform";
import { readDocument } from "../issues/document-text";
import type { IssueReader } from "../issues/reader";

export const REGISTRY = ".cotenant/gates/registry.json";
const REGISTRY_SCHEMA = 1;
const LARGEST = 1 << 20;
const MOST_GATES = 500;
export const MAX_GATE_TITLE = 200;
export const MAX_COMMAND = 4_096;
export const DEFAULT_TIMEOUT_SECS = 600;
export const MAX_TIMEOUT_SECS = 86_400;

/** A gate, as every issue that has it must pass it. */
export interface GateDefinition {
  readonly key: string;
  readonly title: string;
  readonly kind: "manual" | "automated";
  /** What a shell runs. Null for manual ones, like the next two. */
  readonly command: string | null;
  readonly timeout_secs: number | null;
  /** From the worktree's root. */
  readonly cwd: string | null;
  readonly defined_at: string;
  readonly defined_by: string;
}

interface RegistryProblem {
  readonly key: string | null;
  readonly message: string;
}

export interface Registry {
  /** The gates that can be used, by key. */
  readonly gates: ReadonlyMap<string, GateDefinition>;
  /** What is wrong with others, or with what stands beside them. */
  readonly problems: readonly RegistryProblem[];
  /** Everything as it was read, so that a change of one gate leaves the rest as its author wrote it. */
  readonly document: Readonly<Record<string, unknown>>;
}

export type RegistryReading =
  | { readonly registry: Registry }
  | { readonly broken: string; readonly isNewer?: boolean };

const EMPTY: Registry = { gates: new Map(), problems: [], document: {} };
const KEY = /^[a-z0-9][a-z0-9._-]{0,59}$/;
const FIELDS = new Set([
  "key",
  "title",
  "kind",
  "command",
  "timeout_secs",
  "cwd",
  "defined_at",
  "defined_by",
]);

function isGateKey(text: string): boolean {
  return KEY.test(text);
}

export function parseGateKey(text: string): string {
  if (isGateKey(text)) return text;
  throw new CotenantError("E_USAGE", `"${printable(text, 80)}" cannot be a gate's key`, {
    hint: "a key has up to 60 lower-case letters, digits and . _ -, such as tests or code-review",
    data: { key: printable(text, 200) },
  });
}

/** Never throws for what somebody's editor, or a merge, has left there. */
export function decodeRegistry(text: string): RegistryReading {
  const reading = readDocument(text, REGISTRY_SCHEMA);
  if ("broken" in reading) return reading;
  const value = reading.document;
  if (value["schema_version"] !== REGISTRY_SCHEMA) return { broken: "it has no schema_version" };
  if (!Array.isArray(value["gates"])) return { broken: "it has no list of gates" };
  if (value["gates"].length > MOST_GATES) return { broken: `it has more than ${MOST_GATES} gates` };
  return { registry: registryFrom(value, value["gates"]) };
}

function registryFrom(document: Record<string, unknown>, entries: readonly unknown[]): Registry {
  const gates = new Map<string, GateDefinition>();
  const problems: RegistryProblem[] = Object.keys(document)
    .filter((name) => name !== "schema_version" && name !== "gates")
    .map((name) => ({ key: null, message: `there is no field "${printable(name, 80)}"` }));
  const seen = new Set<string>();
  for (const [at, entry] of entries.entries()) {
    const gate = definitionFrom(entry);
    if (typeof gate === "string") {
      const key = isObject(entry) && typeof entry["key"] === "string" ? printable(entry["key"], 80) : null;
      problems.push({ key, message: `${key === null ? `gate ${at + 1}` : `"${key}"`} ${gate}` });
      continue;
    }
    for (const name of Object.keys(entry as object))
      if (!FIELDS.has(name))
        problems.push({
          key: gate.key,
          message: `"${gate.key}" has a field "${printable(name, 80)}", which is not known`,
        });
    if (seen.has(gate.key)) {
      // Which of the two is meant cannot be known, and one of them may name a command.
      gates.delete(gate.key);
      problems.push({ key: gate.key, message: `"${gate.key}" is there twice, so neither counts` });
    } else gates.set(gate.key, gate);
    seen.add(gate.key);
  }
  return { gates, problems, document };
}

/** The gate, or what is wrong with it. */
function definitionFrom(entry: unknown): GateDefinition | string {
  if (!isObject(entry)) return "is not an object";
  const { key, title, kind, command, timeout_secs: timeout, cwd } = entry;
  if (typeof key !== "string" || !isGateKey(key)) return "has no key that a gate can have";
  if (kind !== "manual" && kind !== "automated") return "is neither manual nor automated";
  const text = (field: unknown) => (typeof field === "string" ? field : "");
  const known = {
    key,
    title: text(title).slice(0, MAX_GATE_TITLE),
    defined_at: text(entry["defined_at"]),
    defined_by: text(entry["defined_by"]),
  };
  if (kind === "manual") {
    if (command != null) return "is manual, and names a command";
    return { ...known, kind, command: null, timeout_secs: null, cwd: null };
  }
  const wrong = commandProblem(text(command));
  if (wrong !== null) return wrong;
  const secs = timeout ?? DEFAULT_TIMEOUT_SECS;
  if (!isTimeout(secs)) return `has a timeout_secs that is not a whole number from 1 to ${MAX_TIMEOUT_SECS}`;
  if (cwd != null && !isInnerPath(cwd)) return "has a cwd that is not a directory of the repository";
  return { ...known, kind, command: text(command), timeout_secs: secs, cwd: text(cwd) || "." };
}

export function commandProblem(command: string): string | null {
  if (command.trim() === "") return "has no command";
  if (command.length > MAX_COMMAND) return `has a command of more than ${MAX_COMMAND} characters`;
  return /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(command) ? "has control characters in its command" : null;
}

export function isTimeout(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= MAX_TIMEOUT_SECS;
}

function isInnerPath(value: unknown): boolean {
  if (typeof value !== "string" || value.length > 1_000 || /\p{Cc}/u.test(value)) return false;
  return !value.startsWith("/") && !value.split("/").includes("..");
}

/** As it stands in this worktree, or what is wrong with it as a whole. */
export async function inspectRegistry(platform: Platform, root: string): Promise<RegistryReading> {
  const path = `${root}/${REGISTRY}`;
  return during("reading the gates", path, async () => {
    const stat = await platform.files.stat(path);
    if (stat === null) return { registry: EMPTY };
    if (stat.kind !== "file") return { broken: "it is not a plain file" };
    if (stat.size > LARGEST) return { broken: `it has more than ${LARGEST} bytes` };
    const bytes = await platform.files.readFile(path);
    return bytes === null ? { registry: EMPTY } : decodeRegistry(new TextDecoder().decode(bytes));
  });
}

export async function readRegistry(platform: Platform, root: string): Promise<Registry> {
  const reading = await inspectRegistry(platform, root);
  if ("registry" in reading) return reading.registry;
  const path = `${root}/${REGISTRY}`;
  throw new CotenantError(
    reading.isNewer === true ? "E_SCHEMA_NEWER" : "E_CONFIG",
    `${path} cannot be used: ${reading.broken}`,
    {
      ...(reading.isNewer === true
        ? {}
        : { hint: "mend it with an editor, or take it from a commit that was good" }),
      data: { path, why: reading.broken },
    },
  );
}

/** The text with one gate put in, in place of whatever has its key; `null` takes that away. */
export function registryWith({ document }: Registry, key: string, gate: GateDefinition | null): string {
  const before = Array.isArray(document["gates"]) ? (document["gates"] as unknown[]) : [];
  const others = before.filter((entry) => !isObject(entry) || entry["key"] !== key);
  const after = gate === null ? others : [...others, gate];
  if (after.length > MOST_GATES)
    throw new CotenantError("E_LIMIT", `a repository has at most ${MOST_GATES} gates`, {
      hint: "remove one that no issue has: 'cotenant gate remove <key>'",
    });
  const gates = after.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : keyOf(a) > keyOf(b) ? 1 : 0));
  return `${JSON.stringify({ ...document, schema_version: REGISTRY_SCHEMA, gates }, null, 2)}\n`;
}

function keyOf(entry: unknown): string {
  return isObject(entry) && typeof entry["key"] === "string" ? entry["key"] : "";
}

/** A gate that is defined here, or the error that says which are. */
export function definitionOf({ gates, problems }: Registry, key: string): GateDefinition {
  const gate = gates.get(key);
  if (gate !== undefined) return gate;
  const problem = problems.find((one) => one.key === key);
  if (problem !== undefined)
    throw new CotenantError("E_CONFIG", `.cotenant/gates/registry.json: ${problem.message}`, {
      hint: "mend it with an editor, or define it anew with 'cotenant gate define --replace'",
      data: { gate: key },
    });
  const known = [...gates.keys()];
  throw new CotenantError("E_NOT_FOUND", `no gate "${printable(key, 80)}" is defined here`, {
    hint:
      known.length === 0
        ? `define it first: cotenant gate define ${printable(key, 80)}`
        : `there are ${known.slice(0, 20).join(", ")}; 'cotenant gate define' makes another`,
    data: { gate: printable(key, 80), gates: known },
  });
}

/** What is said of them travels in the log with one write. */
const MOST_GATES_OF_ISSUE = 20;
const registries = new WeakMap<IssueReader, Promise<Registry>>();

/** Gates that a new issue is to have, each once: they must be defined. One look at the registry does for many issues. */
export async function knownGates(reader: IssueReader, keys: readonly string[]): Promise<string[]> {
  const wanted = [...new Set(keys)];
  if (wanted.length === 0) return wanted;
  const registry = registries.get(reader) ?? readRegistry(reader.sources.platform, reader.here.root);
  registries.set(reader, registry);
  for (const key of wanted) definitionOf(await registry, key);
  refuseTooMany(wanted);
  return wanted;
}

export function refuseTooMany(gates: readonly string[]): void {
  if (gates.length <= MOST_GATES_OF_ISSUE) return;
  throw new CotenantError("E_LIMIT", `an issue has at most ${MOST_GATES_OF_ISSUE} gates`, {
    hint: "let one command check several things",
  });
}

export function describeGate({ kind, title, command, timeout_secs, cwd }: GateDefinition): string {
  const name = printable(title, 200);
  if (kind === "manual") return `manual; ${name}`;
  const where = cwd === "." ? "" : ` in ${printable(cwd ?? "", 200)}`;
  return `automated; ${name}; runs "${printable(command ?? "", 500)}"${where}, for ${timeout_secs} s at most`;
}
