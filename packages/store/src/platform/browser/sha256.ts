import { bytesOf } from "./file-handle.ts";

/** The round constants and the first state of FIPS 180-4: fractions of the roots of the first primes. */
const k = Uint32Array.from(primes(64), (prime) => fraction(Math.cbrt(prime)));
const start = Uint32Array.from(primes(8), (prime) => fraction(Math.sqrt(prime)));

function primes(count: number): readonly number[] {
  const found: number[] = [];
  for (let one = 2; found.length < count; one++)
    if (found.every((prime) => one % prime !== 0)) found.push(one);
  return found;
}

/** Returns the first 32 bits after the point. */
function fraction(value: number): number {
  return Math.floor((value - Math.floor(value)) * 2 ** 32);
}

const blockBytes = 64;

/** SHA-256 (FIPS 180-4) in plain JavaScript: Web Crypto has no synchronous hash and none that takes its input in pieces. */
class Sha256 {
  readonly #state = start.slice();
  readonly #words = new Uint32Array(64);
  readonly #rest = new Uint8Array(blockBytes);
  #total = 0;

  /** Adds bytes, or a string as UTF-8. */
  update(content: string | ArrayBufferView): this {
    const bytes = bytesOf(content);
    let from = 0;
    const held = this.#total % blockBytes;
    this.#total += bytes.length;
    if (held > 0) {
      from = Math.min(blockBytes - held, bytes.length);
      this.#rest.set(bytes.subarray(0, from), held);
      if (held + from < blockBytes) return this;
      this.#add(this.#rest, 0);
    }
    for (; from + blockBytes <= bytes.length; from += blockBytes) this.#add(bytes, from);
    this.#rest.set(bytes.subarray(from));
    return this;
  }

  /** Ends the hash. Call it once. */
  digest(encoding: "hex" | "base64"): string {
    const bits = BigInt(this.#total) * 8n;
    const held = this.#total % blockBytes;
    // A one, zeros, and the number of bits in the last 8 bytes of a block.
    const padding = new Uint8Array((held < 56 ? blockBytes : 2 * blockBytes) - held);
    padding[0] = 0x80;
    new DataView(padding.buffer).setBigUint64(padding.length - 8, bits);
    this.update(padding);
    const digest = new Uint8Array(32);
    const view = new DataView(digest.buffer);
    for (const [i, word] of this.#state.entries()) view.setUint32(4 * i, word);
    if (encoding === "base64") return btoa(String.fromCharCode(...digest));
    return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  #add(bytes: Uint8Array, from: number): void {
    const [words, state] = [this.#words, this.#state];
    for (let i = 0, at = from; i < 16; i++, at += 4)
      words[i] = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
    for (let i = 16; i < 64; i++) {
      const [x, y] = [words[i - 15]!, words[i - 2]!];
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      words[i] = words[i - 16]! + s0 + words[i - 7]! + s1;
    }
    let a = state[0]!;
    let b = state[1]!;
    let c = state[2]!;
    let d = state[3]!;
    let e = state[4]!;
    let f = state[5]!;
    let g = state[6]!;
    let h = state[7]!;
    for (let i = 0; i < 64; i++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + k[i]! + words[i]!) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) state[i] = state[i]! + word;
  }
}

/** Returns a hasher as `node:crypto` has it. Browsers have `sha256` only: nothing outside of downloads needs another one. */
export function createHash(algorithm: "sha256" | "sha1"): Sha256 {
  if (algorithm !== "sha256")
    throw new TypeError(
      `[periodic-eval] createHash in browsers: got "${algorithm}", expected "sha256". Use sha256, or download the files in Node.`,
    );
  return new Sha256();
}
