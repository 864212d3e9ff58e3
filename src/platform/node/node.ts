import * as fs from "node:fs";
import type {
  Compression,
  DirectoryWatch,
  GitDigest,
  PiecewiseDigest,
  Platform,
  Random,
  Sleep,
  Timers,
} from "../platform";
import { NodeClock } from "./clock";
import { loadCrypto, sha1, sha256 } from "./crypto";
import { NodeFiles } from "./files";
import { NodeLocks } from "./locks";
import { NodeProcesses } from "./processes";

/** Asked for a few bytes at a time, the system's generator takes as long as for many. */
const POOL_BYTES = 1_024;

class NodeRandom implements Random {
  #pool: Buffer = Buffer.alloc(0);
  #used = 0;

  bytes(length: number): Uint8Array {
    if (length > POOL_BYTES) return loadCrypto().randomBytes(length);
    if (this.#used + length > this.#pool.length) {
      this.#pool = loadCrypto().randomBytes(POOL_BYTES);
      this.#used = 0;
    }
    // A copy: nobody who keeps one keeps the others, or can change them.
    const bytes = Uint8Array.prototype.slice.call(this.#pool, this.#used, this.#used + length);
    this.#pool.fill(0, this.#used, this.#used + length);
    this.#used += length;
    return bytes;
  }
}

class NodeDigest implements GitDigest {
  sha256(data: string | Uint8Array): string {
    return sha256(data);
  }

  sha1(data: Uint8Array): string {
    return sha1(data);
  }

  begin(algorithm: "sha1" | "sha256"): PiecewiseDigest {
    const hash = loadCrypto().createHash(algorithm);
    return { add: (data) => void hash.update(data), hex: () => hash.digest("hex") };
  }
}

class NodeCompression implements Compression {
  pack(data: Uint8Array): Uint8Array {
    return (require("node:zlib") as typeof import("node:zlib")).gzipSync(data);
  }

  unpack(data: Uint8Array): Uint8Array {
    return (require("node:zlib") as typeof import("node:zlib")).gunzipSync(data);
  }

  deflate(data: Uint8Array): Uint8Array {
    return (require("node:zlib") as typeof import("node:zlib")).deflateSync(data, { level: 1 });
  }

  inflate(data: Uint8Array, most: number): Uint8Array {
    return (require("node:zlib") as typeof import("node:zlib")).inflateSync(data, { maxOutputLength: most });
  }
}

class NodeTimers implements Timers {
  sleep(ms: number): Sleep {
    let wake = () => {};
    const done = new Promise<void>((resolve) => {
      // Node fires at once when asked for more than it can count.
      const timer = setTimeout(resolve, Math.min(ms, 0x7fff_ffff));
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    return { done, wake: () => wake() };
  }

  watchDirectory(path: string, notify: () => void): DirectoryWatch {
    const watch = this.watchFile(path, notify);
    return { isOn: watch !== null, close: () => watch?.close() };
  }

  watchFile(path: string, notify: () => void): { close(): void } | null {
    try {
      const watcher = fs.watch(path, { persistent: false }, notify);
      watcher.on("error", () => {});
      return { close: () => watcher.close() };
    } catch {
      // No watches left, or none here.
      return null;
    }
  }
}

export function nodePlatform(): Platform {
  return {
    clock: new NodeClock(),
    files: new NodeFiles(),
    locks: new NodeLocks(),
    processes: new NodeProcesses(),
    random: new NodeRandom(),
    digest: new NodeDigest(),
    timers: new NodeTimers(),
    compression: new NodeCompression(),
  };
}
