import { CotenantError, usageError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import type { SetChange } from "./changes";

/** `namespace:value`, both short and plain: labels are typed, sorted and shown in columns. */
const LABEL = /^[a-z0-9][a-z0-9-]{0,39}:[A-Za-z0-9][A-Za-z0-9._/+-]{0,79}$/;

export function parseLabel(text: string): string {
  if (LABEL.test(text)) return text;
  throw new CotenantError("E_USAGE", `"${printable(text, 80)}" is not a label`, {
    hint: "a label is namespace:value, such as type:bug or area:login",
    data: { label: printable(text, 200) },
  });
}

export function namespaceOf(label: string): string {
  return label.slice(0, label.indexOf(":"));
}

/** Adding to a namespace that has one value at most takes the old value away. */
export function labelChange(
  current: readonly string[],
  add: readonly string[],
  remove: readonly string[],
  uniqueNamespaces: readonly string[],
): SetChange {
  const added = [...new Set(add)];
  for (const namespace of uniqueNamespaces) {
    const wanted = added.filter((label) => namespaceOf(label) === namespace);
    if (wanted.length > 1) {
      throw usageError(
        `an issue has one ${namespace}: label at most, not ${wanted.join(" and ")}`,
        "choose one of them",
        { namespace, labels: wanted, setting: "issues.unique_labels" },
      );
    }
  }
  const replaced = current.filter((label) => {
    const namespace = namespaceOf(label);
    return (
      uniqueNamespaces.includes(namespace) &&
      !added.includes(label) &&
      added.some((other) => namespaceOf(other) === namespace)
    );
  });
  return { add: added, remove: [...new Set([...remove, ...replaced])] };
}
