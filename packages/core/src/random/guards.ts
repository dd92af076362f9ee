import type { Guard } from "@periodic-eval/contracts";
import { namedStream } from "./streams.ts";

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
