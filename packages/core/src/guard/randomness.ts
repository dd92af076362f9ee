import { namedStream } from "../random/streams.ts";
import type { Guard } from "../contracts/guard.ts";

interface Replacement {
  draw(): number;
}

/** Replacements in force, the newest last: two sessions in one process may overlap and leave in any order. */
const replacements: Replacement[] = [];
let native: () => number = Math.random;

/** What `Math.random` is before and after: the stand-in is always taken away again. */
const own = "training's own";

function install(replacement: Replacement): void {
  if (replacements.length === 0) native = Math.random;
  replacements.push(replacement);
  Math.random = replacement.draw;
}

function uninstall(replacement: Replacement): void {
  replacements.splice(replacements.indexOf(replacement), 1);
  Math.random = replacements.at(-1)?.draw ?? native;
}

/** The stream of whoever draws, where it has one of its own. */
type StreamOf = () => (() => number) | undefined;
const diversions = new Set<StreamOf>();
let diverted: (() => number) | null = null;

function ownStream(): (() => number) | undefined {
  for (const streamOf of diversions) {
    const stream = streamOf();
    if (stream !== undefined) return stream;
  }
  return undefined;
}

/**
 * Work that goes on beside training and draws from `Math.random` without being asked (a client's back-off) must not use
 * up training's numbers. From now on `streamOf` is asked at every draw whose it is: it gives the drawer's own stream, or
 * undefined to leave the draw to whatever `Math.random` is. Called again with the same function, it looks whether
 * somebody has replaced `Math.random` since.
 */
export function divertMathRandom(streamOf: StreamOf): void {
  diversions.add(streamOf);
  const training = replacements.length === 0 ? Math.random : native;
  if (training === diverted) return;
  diverted = () => (ownStream() ?? training)();
  native = diverted;
  if (replacements.length === 0) Math.random = diverted;
}

/** Makes `Math.random` a stream of the seed until it is restored. Seed and stream are made at the first draw. */
function standIn(seedOf: () => string): { readonly draws: () => number; restore(): void } {
  let stream: (() => number) | null = null;
  let draws = 0;
  const replacement: Replacement = {
    draw() {
      const apart = ownStream();
      if (apart !== undefined) return apart();
      stream ??= namedStream(seedOf());
      draws += 1;
      return stream();
    },
  };
  install(replacement);
  return { draws: () => draws, restore: () => uninstall(replacement) };
}

/** Runs work, to its end where it is a promise, that draws from a stream of the seed instead of training's numbers. */
export function withSeededRandom<T>(seed: string, work: () => T): T {
  const { restore } = standIn(() => seed);
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
 * While it is entered, `Math.random` is a seeded stream: tfjs draws dropout masks, initial weights and shuffles from
 * it, and a measurement must neither depend on it nor use up training's numbers. The session always installs it, in
 * windows and round hooks. Entering costs next to nothing.
 */
export function mathRandomGuard(): Guard {
  return {
    name: "math-random",
    around: "hooks",
    enter(context) {
      const stream = standIn(() => context.seed);
      return {
        before: own,
        leave() {
          stream.restore();
          const draws = stream.draws();
          const note =
            draws === 0
              ? "no draws"
              : `served ${draws} ${draws === 1 ? "draw" : "draws"} from a seeded stream`;
          return { part: "math-random", before: own, after: own, intact: true, note };
        },
      };
    },
  };
}

/**
 * Observes a random stream of training (shuffling, dropout): a callback or an evaluation that draws from it is caught
 * by name. `state` tells the stream's state, for example the number of draws so far; it is asked before and after
 * every hook, so it must cost microseconds.
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
