import { nodePlatform } from "../../src/platform/node/node";
import type { Files, Platform } from "../../src/platform/platform";

const CHANGES = new Set<keyof Files>([
  "open",
  "writeAt",
  "sync",
  "syncDirectory",
  "rename",
  "link",
  "unlink",
  "makeDirectory",
  "removeDirectory",
]);

function watching(each: (isChange: boolean, name: keyof Files) => void | Promise<void>): Platform {
  const platform = nodePlatform();
  const files = new Proxy(platform.files, {
    get: (target, name: keyof Files) => {
      const call = target[name] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        const pending = each(CHANGES.has(name), name);
        return pending === undefined
          ? call.apply(target, args)
          : pending.then(() => call.apply(target, args));
      };
    },
  });
  return { ...platform, files };
}

/** A machine on which something else happens just before the n-th change. */
export function interruptedAt(n: number, meanwhile: () => Promise<void>): Platform {
  let changes = 0;
  return watching((isChange) => {
    if (!isChange) return undefined;
    changes++;
    return changes === n ? meanwhile() : Promise.resolve();
  });
}

/** A machine on which the process dies at its n-th change. */
export function dyingAt(n: number): Platform {
  let changes = 0;
  return watching((isChange, name) => {
    if (isChange) changes++;
    // Descriptors are closed by the operating system, whoever dies; nothing else is tidied up.
    if (changes >= n && name !== "close") throw Object.assign(new Error("dead"), { code: "EDEAD" });
  });
}
