import { isObject, type JsonObject } from "../../codec/json";

/** Why a committed file cannot be used. */
export interface Broken {
  readonly broken: string;
  readonly isNewer?: boolean;
}

/** A JSON object of a schema that is understood, or what is wrong with the text. Other people's editors wrote it. */
export function readDocument(text: string, schema: number): { readonly document: JsonObject } | Broken {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { broken: /^<<<<<<< /m.test(text) ? "it has unresolved merge conflicts" : "it is not JSON" };
  }
  if (!isObject(value)) return { broken: "it is not an object" };
  const version = value["schema_version"];
  if (typeof version === "number" && version > schema)
    return { broken: `a newer cotenant wrote it (schema ${version})`, isNewer: true };
  return { document: value };
}
