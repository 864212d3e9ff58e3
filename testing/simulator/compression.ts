import type { Compression } from "../../src/platform/platform";
import { fnv1a } from "./prng";

const HEADER_BYTES = 12;
const MAGIC = 0x53494d50;

/**
 * Packs nothing, but refuses what it did not pack, whole and undamaged, as a real decompressor does. It answers
 * at once: a thread pool would break the determinism.
 */
export const simCompression: Compression = {
  pack,
  unpack,
  deflate: pack,
  inflate(data, most) {
    const whole = unpack(data);
    if (whole.length > most) throw new Error("packed data is larger than allowed");
    return whole;
  },
};

function pack(data: Uint8Array): Uint8Array {
  const packed = new Uint8Array(HEADER_BYTES + data.length);
  const header = new DataView(packed.buffer);
  header.setUint32(0, MAGIC);
  header.setUint32(4, data.length);
  header.setInt32(8, checksum(data));
  packed.set(data, HEADER_BYTES);
  return packed;
}

function unpack(packed: Uint8Array): Uint8Array {
  if (packed.length < HEADER_BYTES) throw new Error("packed data is damaged");
  const header = new DataView(packed.buffer, packed.byteOffset);
  const data = packed.slice(HEADER_BYTES);
  const isWhole = header.getUint32(0) === MAGIC && header.getUint32(4) === data.length;
  if (!isWhole || header.getInt32(8) !== checksum(data)) throw new Error("packed data is damaged");
  return data;
}

function checksum(data: Uint8Array): number {
  let sum = fnv1a("");
  for (const byte of data) sum = Math.imul(sum ^ byte, 0x01000193);
  return sum;
}
