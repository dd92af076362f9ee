import seedrandom from "seedrandom";
import { PeriodicEvalError, hashText } from "@periodic-eval/contracts";

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

/** A random stream whose state can be saved. */
export interface StatefulStream {
  /** Returns the next number in [0, 1). */
  readonly next: () => number;
  /** Returns the state of the stream. `statefulStream` continues from it. */
  readonly state: () => string;
}

/**
 * Returns a `namedStream` whose state can be saved in a checkpoint.
 *
 * @param state Where to continue; default: the start of the stream.
 * @throws PeriodicEvalError `data` if `state` is not the state of a stream.
 */
export function statefulStream(seed: string, state?: string): StatefulStream {
  const stream =
    state === undefined ? seedrandom(key(seed), { state: true }) : seedrandom("", { state: unpacked(state) });
  return { next: () => stream(), state: () => packed(stream.state()) };
}

/** seedrandom uses only eight bits of each character, so different seeds could collide. Their hashes are ASCII and do not. */
const key = (seed: string): string => hashText(seed);

/** RC4's two indices and its permutation of 0–255. */
interface Arc4State {
  readonly i: number;
  readonly j: number;
  readonly S: readonly number[];
}

const packed = ({ i, j, S }: Arc4State): string =>
  [i, j, ...S].map((byte) => byte.toString(16).padStart(2, "0")).join("");

function unpacked(text: string): seedrandom.State.Arc4 {
  const [i, j, ...S] = /^[0-9a-f]{516}$/.test(text)
    ? text.match(/../g)!.map((hex) => Number.parseInt(hex, 16))
    : [];
  if (i === undefined || j === undefined || new Set(S).size !== 256) {
    throw new PeriodicEvalError({
      code: "data",
      where: "statefulStream",
      got: `a state of ${text.length} characters`,
      expected: "516 hexadecimal digits, as `state()` returns them",
      fix: "Pass the unchanged state from the checkpoint.",
    });
  }
  return { i, j, S };
}
