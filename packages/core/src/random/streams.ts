import seedrandom from "seedrandom";
import { hashText } from "@periodic-eval/contracts";

/**
 * Joins parts into one seed. Different parts give different seeds: `seedOf("42", "em", 20)` is `/42/em/#20`. A seed may be a
 * part of another seed.
 */
export function seedOf(...parts: readonly (string | number)[]): string {
  return parts.map((part) => `/${typeof part === "number" ? `#${part}` : escaped(part)}`).join("");
}

/** Escapes a part as in a JSON pointer (RFC 6901), and a leading `#`, which marks numbers. */
function escaped(part: string): string {
  const text = part.replaceAll("~", "~0").replaceAll("/", "~1");
  return text.startsWith("#") ? `~2${text.slice(1)}` : text;
}

/** Returns a generator of numbers in [0, 1) with 53 bits each, which depend only on the seed. */
export function namedStream(seed: string): () => number {
  return seedrandom(key(seed));
}

/**
 * Returns a generator of numbers in [0, 1) with 32 bits each, for millions of draws: about four times as fast as
 * `namedStream`, which gives it its initial state. The generator is sfc32 (Doty-Humphrey, PractRand 0.95, public domain).
 */
export function fastStream(seed: string): () => number {
  const start = namedStream(seed);
  const word = () => Math.floor(start() * 2 ** 32) | 0;
  let [a, b, c, counter] = [word(), word(), word(), 1];
  return () => {
    const drawn = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + drawn) | 0;
    return (drawn >>> 0) / 2 ** 32;
  };
}

/** seedrandom uses only eight bits of each character, so different seeds could collide. Their hashes are ASCII and do not. */
const key = (seed: string): string => hashText(seed);
