import * as fs from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import Ajv2020, { type ValidateFunction } from "ajv/dist/2020";
import { findCommand } from "../../src/cli/lookup";

/** The JSON Schemas that the package ships. */
export const SCHEMAS = fileURLToPath(new URL("../../schemas", import.meta.url));

/** Every schema file by its path below `schemas/`. */
export function schemaFiles(): string[] {
  return fs
    .readdirSync(SCHEMAS, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".json"))
    .map((name) => name.split(path.sep).join("/"))
    .sort();
}

export function schemaName(command: string): string {
  return `${command.replaceAll(" ", "-")}.json`;
}

let loaded: Ajv2020 | null = null;

export function validators(): Ajv2020 {
  if (loaded === null) {
    loaded = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, allErrors: true });
    for (const name of schemaFiles())
      loaded.addSchema(JSON.parse(fs.readFileSync(path.join(SCHEMAS, name), "utf8")), name);
  }
  return loaded;
}

function validator(name: string): ValidateFunction {
  const found = validators().getSchema(name);
  if (found === undefined)
    throw new Error(
      `there is no schemas/${name}: every shape of --json needs its JSON Schema, and a row in docs/JSON.md`,
    );
  return found;
}

/** Throws when what a command line with --json printed is not of the shape that its schema promises. */
export function checkPrinted(args: readonly string[], stdout: string): void {
  const found = findCommand(args);
  const isHelp = found === null || args.includes("--help");
  const name = isHelp ? "help.json" : schemaName(found.name);
  const isStream =
    found !== null && (found.name === "events" || found.name === "dispatch" || args.includes("--watch"));
  const texts = isStream ? stdout.split("\n").slice(0, -1) : [stdout];
  for (const text of texts) {
    const document: unknown = JSON.parse(text);
    const wanted = schemaOf(document as Record<string, unknown>, name);
    const check = validator(wanted);
    if (check(document)) continue;
    const wrong = validators().errorsText(check.errors, { separator: "\n  " });
    throw new Error(`not what schemas/${wanted} promises:\n  ${wrong}\n${text}`);
  }
}

/** A failure is the same for all; a run of dispatch tells of itself before it answers. */
function schemaOf(document: Readonly<Record<string, unknown>>, name: string): string {
  if (document["ok"] === false) return "error.json";
  return name === "dispatch.json" && "event" in document ? "shared/dispatch-event.json" : name;
}
