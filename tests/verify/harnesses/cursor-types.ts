import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { compileFunction, constants } from "node:vm";
import type { Json } from "../../../src/features/harnesses/real-canary/wire/wire";

/** A message type of Cursor's protocol, as the SDK's own bundle has it. */
export interface MessageType {
  new (fields: Json): { toBinary(): Uint8Array };
  fromBinary(bytes: Uint8Array): Json;
}

interface BundleLoader {
  (name: string): Record<string, Json>;
  /** All modules of the bundle, by name. */
  m: Record<string, Json>;
}

/**
 * The SDK exports no message types, and its bundle keeps its module loader to itself. So the bundle is loaded with one
 * assignment more, which hands the loader out.
 */
export function cursorMessageTypes(sdk: string): (name: string) => MessageType {
  const folder = join(sdk, "dist/cjs");
  const loader = loaderOf(folder);
  const types = new Map<string, MessageType>();
  for (const name of Object.keys(loader.m).filter((one) =>
    /generated\/(?:agent|aiserver)\/v1\/.*_pb\.js$/.test(one),
  )) {
    for (const exported of Object.values(loader(name)))
      if (typeof exported?.typeName === "string") types.set(exported.typeName, exported);
  }
  return (name) => {
    const type = types.get(name);
    if (type === undefined) throw new Error(`this version of the Cursor SDK has no message ${name}`);
    return type;
  };
}

const HANDED_OUT = "cotenantCursorLoader";

function loaderOf(folder: string): BundleLoader {
  const text = readFileSync(join(folder, "index.js"), "utf8");
  const opened = text.replace(/}(\w)\.m=(\w),/, `}globalThis.${HANDED_OUT}=$1,$1.m=$2,`);
  if (opened === text) throw new Error("this version of the Cursor SDK is bundled in another way");
  compile(join(folder, "index.js"), opened);
  const loader = (globalThis as Json)[HANDED_OUT] as BundleLoader;
  for (const chunk of readdirSync(folder).filter((name) => /^\d+\.js$/.test(name))) {
    const { modules } = compile(join(folder, chunk), readFileSync(join(folder, chunk), "utf8"));
    loader.m = Object.assign(loader.m, { ...modules, ...loader.m });
  }
  return loader;
}

/** Runs a CommonJS text as if it were that file. */
function compile(file: string, text: string): Json {
  const module = { exports: {} };
  const run = compileFunction(text, ["exports", "require", "module", "__filename", "__dirname"], {
    filename: file,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  run.call(module.exports, module.exports, createRequire(file), module, file, dirname(file));
  return module.exports;
}
