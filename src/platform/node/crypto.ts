type Crypto = typeof import("node:crypto");
let crypto: Crypto | undefined;

/** Costs three milliseconds: only for commands that need it. */
export function loadCrypto(): Crypto {
  crypto ??= require("node:crypto") as Crypto;
  return crypto;
}

export function sha256(data: string | Uint8Array): string {
  return digest("sha256", data);
}

export function sha1(data: Uint8Array): string {
  return digest("sha1", data);
}

/** `hash` came with Node 20.12 and saves making an object per line. */
function digest(algorithm: "sha1" | "sha256", data: string | Uint8Array): string {
  const c = loadCrypto();
  return typeof c.hash === "function"
    ? c.hash(algorithm, data, "hex")
    : c.createHash(algorithm).update(data).digest("hex");
}
