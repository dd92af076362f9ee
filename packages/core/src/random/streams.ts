import seedrandom from "seedrandom";
import { PeriodicEvalError, hashText, type Guard } from "@periodic-eval/contracts";

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

interface Replacement {
  draw(): number;
}

/** Active replacements, the newest last: two sessions in one process may overlap and leave in any order. */
const replacements: Replacement[] = [];
/** The training's `Math.random`, while one is active. */
let native: () => number = Math.random;

/** The evidence before and after: `Math.random` is always restored. Part of snapshots, so it must not change. */
const trainingRandom = "training's own";

function install(replacement: Replacement): void {
  if (replacements.length === 0) native = Math.random;
  replacements.push(replacement);
  Math.random = replacement.draw;
}

function uninstall(replacement: Replacement): void {
  replacements.splice(replacements.indexOf(replacement), 1);
  Math.random = replacements.at(-1)?.draw ?? native;
}

/** Returns the caller's separate stream, or undefined if it has none. */
type StreamOf = () => (() => number) | undefined;
let separateStream: StreamOf = () => undefined;
/** The training's `Math.random` behind a check for callers with a separate stream. */
let diverted: (() => number) | null = null;

/**
 * Gives background work that draws from `Math.random` (a client's retry delays) a separate stream, so that it does not use up
 * the training's numbers. From now on `Math.random` calls `streamOf` at every draw: it returns the caller's stream, or undefined
 * to draw as before. Calling it again restores the diversion if other code has replaced `Math.random`.
 */
export function divertMathRandom(streamOf: StreamOf): void {
  separateStream = streamOf;
  const training = replacements.length === 0 ? Math.random : native;
  if (training === diverted) return;
  native = diverted = () => (separateStream() ?? training)();
  if (replacements.length === 0) Math.random = diverted;
}

/** Replaces `Math.random` by a seeded stream until `restore`. Seed and stream are created at the first draw. */
function replaceMathRandom(seedOf: () => string): { readonly draws: () => number; restore(): void } {
  let stream: (() => number) | null = null;
  let draws = 0;
  const replacement: Replacement = {
    draw() {
      const separate = separateStream();
      if (separate !== undefined) return separate();
      stream ??= namedStream(seedOf());
      draws += 1;
      return stream();
    },
  };
  install(replacement);
  return { draws: () => draws, restore: () => uninstall(replacement) };
}

/** Runs `work` with `Math.random` replaced by a seeded stream. If `work` returns a promise, until it settles. */
export function withSeededRandom<T>(seed: string, work: () => T): T {
  const { restore } = replaceMathRandom(() => seed);
  let result: T;
  try {
    result = work();
  } catch (error) {
    restore();
    throw error;
  }
  if (result instanceof Promise) return result.finally(restore) as T;
  restore();
  return result;
}

/**
 * Returns the guard that replaces `Math.random` by a seeded stream while it is entered. TensorFlow.js draws dropout masks,
 * initial weights and shuffles from `Math.random`; a measurement must neither depend on the training's numbers nor use them up.
 * The session always installs this guard, in windows and around hooks. Entering is nearly free.
 */
export function mathRandomGuard(): Guard {
  return {
    name: "math-random",
    around: "hooks",
    enter(context) {
      const stream = replaceMathRandom(() => context.seed);
      return {
        before: trainingRandom,
        leave() {
          stream.restore();
          const draws = stream.draws();
          const note =
            draws === 0
              ? "no draws"
              : `served ${draws} ${draws === 1 ? "draw" : "draws"} from a seeded stream`;
          return { part: "math-random", before: trainingRandom, after: trainingRandom, intact: true, note };
        },
      };
    },
  };
}

/**
 * Returns a guard that observes a random stream of the training (shuffling, dropout). It detects a callback or an evaluation
 * that draws from the stream.
 *
 * @param name Names the stream in the evidence.
 * @param state Returns the stream's state, such as the number of draws so far. It is called before and after every hook, so it
 *   must take microseconds.
 */
export function streamGuard(name: string, state: () => string): Guard {
  return {
    name,
    around: "hooks",
    enter() {
      const before = state();
      return {
        before,
        leave() {
          const after = state();
          return { part: name, before, after, intact: before === after };
        },
      };
    },
  };
}
