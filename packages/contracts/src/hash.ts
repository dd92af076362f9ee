import { PeriodicEvalError } from "./errors.ts";
import type { Json } from "./json.ts";

/**
 * Computes a 128-bit content hash: `pe128:` and 32 hexadecimal digits. Fast in plain JavaScript. It detects accidental changes;
 * it is not cryptographic and does not detect forgeries.
 *
 * A single changed word always changes the hash: the state (four 32-bit lanes) is xored with a block of four words and permuted
 * over all 128 bits. For a fixed block this is a bijection of the state, for a fixed state a bijection of the block. So two
 * inputs that differ within one block have different states after it, keep them different through the equal blocks that follow,
 * and have different digests. Changes in several blocks can cancel, with a probability of about 2^-128. Words are read in the
 * host's byte order, which is little-endian everywhere JavaScript runs.
 */
export interface Hasher {
  /** Adds the bytes of a view. The hash does not depend on how bytes are split into views. */
  update(view: ArrayBufferView): Hasher;
  /** Returns the hash of all bytes so far. More bytes may follow. */
  digest(): string;
}

/** Returns a hasher without bytes. */
export function createHasher(): Hasher {
  const state = Int32Array.of(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344); // digits of π
  /** The bytes of the last, incomplete block. */
  const rest = new Uint8Array(blockBytes);
  let total = 0;

  const hasher: Hasher = {
    update(view) {
      const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
      const buffered = total % blockBytes;
      total += bytes.length;
      let from = 0;
      if (buffered > 0) {
        from = Math.min(blockBytes - buffered, bytes.length);
        rest.set(bytes.subarray(0, from), buffered);
        if (buffered + from < blockBytes) return hasher;
        absorb(state, new Int32Array(rest.buffer));
      }
      const whole = from + Math.floor((bytes.length - from) / blockBytes) * blockBytes;
      absorbBytes(state, bytes.subarray(from, whole));
      rest.set(bytes.subarray(whole));
      return hasher;
    },
    digest() {
      const end = state.slice();
      const buffered = total % blockBytes;
      const last = new Uint8Array(blockBytes);
      last.set(rest.subarray(0, buffered));
      // The length distinguishes padding from bytes; the empty rounds spread the last block over all lanes.
      absorb(end, new Int32Array(last.buffer));
      absorb(end, Int32Array.of(total, Math.floor(total / 2 ** 32), 0, 0, ...Array<number>(16).fill(0)));
      return `pe128:${Array.from(end, (lane) => (lane >>> 0).toString(16).padStart(8, "0")).join("")}`;
    },
  };
  return hasher;
}

export const hashBytes = (view: ArrayBufferView): string => createHasher().update(view).digest();

/** Returns the hash of a string's UTF-8 bytes. */
export const hashText = (text: string): string => hashBytes(new TextEncoder().encode(text));

/** Returns the hash of a value's canonical JSON, which does not depend on the order of object keys. */
export const hashJson = (value: Json): string => hashText(canonicalJson(value));

/**
 * Returns JSON with sorted keys and without spaces (RFC 8785, except that lone surrogates are escaped).
 *
 * @throws PeriodicEvalError `data` for a value that JSON cannot represent.
 */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map((entry: Json) => canonicalJson(entry)).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const entries = Object.entries(value as Readonly<Record<string, Json | undefined>>)
      .filter((entry): entry is [string, Json] => entry[1] !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${entries.map(([name, entry]) => `${JSON.stringify(name)}:${canonicalJson(entry)}`).join(",")}}`;
  }
  const isJson = value === null || ["string", "boolean"].includes(typeof value) || Number.isFinite(value);
  if (isJson) return JSON.stringify(value);
  throw new PeriodicEvalError({
    code: "data",
    where: "canonicalJson",
    got: String(value),
    expected: "null, a boolean, a finite number, a string, or an array or object of these",
    fix: "Write null for an unknown value.",
  });
}

const blockBytes = 16;
const scratchBytes = 1 << 16;

/** Absorbs complete blocks of bytes. Copies bytes that are not aligned to a word. */
function absorbBytes(state: Int32Array, bytes: Uint8Array): void {
  if (bytes.byteOffset % 4 === 0)
    return absorb(state, new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4));
  for (let from = 0; from < bytes.length; from += scratchBytes) {
    absorb(state, new Int32Array(bytes.slice(from, from + scratchBytes).buffer));
  }
}

/**
 * Absorbs words into the state. Each line of the loop is invertible given the lanes after it: a multiplication by an odd
 * factor, an xor with a shift, a rotation, a sum or xor with a lane that is still known.
 */
function absorb(state: Int32Array, words: Int32Array): void {
  let a = state[0]!;
  let b = state[1]!;
  let c = state[2]!;
  let d = state[3]!;
  for (let i = 0; i < words.length; i += 4) {
    a = Math.imul(a ^ words[i]!, 0x9e3779b1);
    b = Math.imul(b ^ words[i + 1]!, 0x85ebca77);
    c = Math.imul(c ^ words[i + 2]!, 0xc2b2ae3d);
    d = Math.imul(d ^ words[i + 3]!, 0x27d4eb2f);
    a ^= a >>> 16;
    b ^= b >>> 15;
    c ^= c >>> 13;
    d ^= d >>> 14;
    a = (((a << 15) | (a >>> 17)) + b) | 0;
    b = ((b << 11) | (b >>> 21)) ^ c;
    c = (((c << 19) | (c >>> 13)) + d) | 0;
    d = ((d << 7) | (d >>> 25)) ^ a;
  }
  state.set([a, b, c, d]);
}
