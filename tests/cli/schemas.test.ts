import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/commands";
import { LISTED } from "../../src/cli/lookup";
import { ERRORS } from "../../src/errors/registry";
import { ISSUE_STATES, PRIORITIES } from "../../src/features/issues/model";
import { EVENT_TYPES } from "../../src/features/watch/operations/events";
import { KEY_KINDS } from "../../src/kernel/keys";

import { ROOT } from "../house/source";
import { checkPrinted, SCHEMAS, schemaFiles, schemaName, validators } from "../support/schemas";

const read = (name: string) => JSON.parse(fs.readFileSync(path.join(SCHEMAS, name), "utf8"));
const files = schemaFiles();
/** Those that are no command's. */
const OTHERS = ["error.json", "help.json"];

describe("the JSON Schemas", () => {
  it("are one for every command, and none for what is no command", () => {
    const wanted = [...LISTED.map(schemaName), ...OTHERS].sort();
    expect(files.filter((name) => !name.startsWith("shared/"))).toEqual(wanted);
    expect(Object.keys(COMMANDS).length).toBeGreaterThan(30);
  });

  it.each(files)("%s is valid JSON Schema of draft 2020-12, and its references lead somewhere", (name) => {
    const schema = read(name);
    expect(schema.$schema).toMatch(/json-schema\.org\/draft\/2020-12\/schema$/);
    expect(schema.title).toMatch(/./);
    expect(validators().validateSchema(schema)).toBe(true);
    expect(validators().getSchema(name)).toBeTypeOf("function");
  });

  it("are strict: no object may have a field that is not named", () => {
    const loose: string[] = [];
    const visit = (value: unknown, where: string) => {
      if (typeof value !== "object" || value === null) return;
      const schema = value as Record<string, unknown>;
      if (schema["properties"] !== undefined && schema["additionalProperties"] !== false) loose.push(where);
      for (const [name, inner] of Object.entries(schema)) visit(inner, `${where}/${name}`);
    };
    for (const name of files) visit(read(name), name);
    expect(loose).toEqual([]);
  });

  it("have the words of the code", () => {
    const { $defs } = read("shared/words.json");
    expect($defs.kind.enum).toEqual(KEY_KINDS);
    expect(read("shared/event.json").properties.event_type.enum).toEqual(EVENT_TYPES);
    expect(read("shared/issue.json").properties.state.enum).toEqual(ISSUE_STATES);
    expect(read("shared/issue.json").properties.priority.enum).toEqual(PRIORITIES);
    expect(read("error.json").properties.error.properties.code.enum).toEqual(Object.keys(ERRORS));
  });

  it("are shipped, and can be imported by their names", () => {
    const manifest = JSON.parse(fs.readFileSync(path.join(ROOT, "package.json"), "utf8"));
    expect(manifest.files).toContain("schemas");
    expect(manifest.exports["./schemas/*"]).toBe("./schemas/*");
  });

  it("are listed in docs/JSON.md, each once, with its fields", () => {
    const page = fs.readFileSync(path.join(ROOT, "docs/JSON.md"), "utf8");
    const rows = [...page.matchAll(/^\| .*\]\(\.\.\/schemas\/([\w/-]+\.json)\).*$/gm)];
    expect(rows.map(([, name]) => name!).sort()).toEqual(files);
    for (const [row, name] of rows) {
      const { properties } = read(name!);
      const fields = Object.keys(properties?.data?.properties ?? {});
      expect(
        fields.filter((field) => !row.includes(`\`${field}\``)),
        name,
      ).toEqual([]);
    }
  });
});

describe("the check of every --json in every test", () => {
  const version = { cotenant: "1.0.0", node: "20.0.0", git: null, platform: "linux-x64" };
  const printed = (document: unknown) => () => checkPrinted(["version", "--json"], JSON.stringify(document));

  it("lets the right shape pass", () => {
    expect(printed({ ok: true, data: version })).not.toThrow();
    expect(printed({ ok: true, data: version, warnings: ["w"] })).not.toThrow();
    expect(
      printed({ ok: false, error: { code: "E_USAGE", message: "m", hint: "h", data: {} } }),
    ).not.toThrow();
  });

  it.each([
    ["a new field", { ok: true, data: { ...version, more: 1 } }],
    ["a missing field", { ok: true, data: { ...version, node: undefined } }],
    ["another type", { ok: true, data: { ...version, node: 20 } }],
    ["another envelope", { data: version }],
    ["an unknown code", { ok: false, error: { code: "E_WHAT", message: "m", hint: "h", data: {} } }],
    ["no hint", { ok: false, error: { code: "E_USAGE", message: "m", hint: "", data: {} } }],
  ])("notices %s", (_, document) => {
    expect(printed(document)).toThrow("promises");
  });

  it("looks at each line of a stream, and at help as help", () => {
    expect(() => checkPrinted(["events", "--json"], '{"sequence":1}\n')).toThrow("events.json");
    expect(() => checkPrinted(["gc", "--help", "--json"], '{"ok":true,"data":{"help":"h"}}')).not.toThrow();
    expect(() => checkPrinted(["gc", "--json"], '{"ok":true,"data":{"help":"h"}}')).toThrow("gc.json");
  });
});
