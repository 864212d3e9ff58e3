import * as path from "node:path";
import type { Descriptor, Locks } from "../platform";

/** The part of `fs-native-extensions` in use: open-file-description locks on Linux, `flock` on macOS. */
interface NativeLocks {
  tryLock(fd: number, offset: number, length: number, exclusive: boolean): void;
  waitForLock(
    fd: number,
    offset: number,
    length: number,
    exclusive: boolean,
    request: object,
    done: (error: Error | null) => void,
  ): unknown;
  unlock(fd: number, offset: number, length: number): void;
}

declare const __COTENANT_BUNDLED__: boolean | undefined;

let loaded: NativeLocks | undefined;

/** Loaded directly: the package's own loader costs 9 ms at every start. */
function native(): NativeLocks {
  if (loaded === undefined) {
    const machine = `${process.platform}-${process.arch}`;
    const bundled = typeof __COTENANT_BUNDLED__ !== "undefined";
    const file = bundled
      ? path.join(__dirname, "native", `${machine}.node`)
      : path.join(
          __dirname,
          "../../../node_modules/fs-native-extensions/prebuilds",
          machine,
          "fs-native-extensions.node",
        );
    const module = { exports: {} as NativeLocks };
    process.dlopen(module, file);
    loaded = module.exports;
  }
  return loaded;
}

export class NodeLocks implements Locks {
  tryLock(fd: Descriptor): boolean {
    try {
      native().tryLock(fd, 0, 0, true);
      return true;
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === "EAGAIN" || code === "EACCES") return false;
      throw error;
    }
  }

  lock(fd: Descriptor): Promise<void> {
    return new Promise((resolve, reject) => {
      const request: { handle?: unknown } = {};
      request.handle = native().waitForLock(fd, 0, 0, true, request, (error) => {
        if (error) reject(error);
        else resolve();
      });
    });
  }

  unlock(fd: Descriptor): void {
    native().unlock(fd, 0, 0);
  }
}
