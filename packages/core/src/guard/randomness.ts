import type { Guard } from "../contracts/guard.ts";
import { namedStream } from "../random/streams.ts";

interface Replacement {
  draw(): number;
}

/** Active replacements, the newest last: two sessions in one process may overlap and leave in any order. */
const replacements: Replacement[] = [];
let native: () => number = Math.random;
/** The value of `Math.random`, once `assign` has made it an accessor. */
let current: () => number = Math.random;

/** The evidence before and after: `Math.random` is always restored. Part of snapshots, so it must not change. */
const trainingRandom = "training's own";

function install(replacement: Replacement): void {
  if (replacements.length === 0) native = Math.random;
  replacements.push(replacement);
  assign(replacement.draw);
}

function uninstall(replacement: Replacement): void {
  replacements.splice(replacements.indexOf(replacement), 1);
  assign(replacements.at(-1)?.draw ?? native);
}

const accessor = {
  configurable: true,
  get: () => current,
  set(value: () => number) {
    // A grader that seeds `Math.random` for itself would seed the training.
    for (const [streamOf, onRefused] of diversions)
      if (streamOf() !== undefined) return isOfTraining(value) ? undefined : onRefused();
    // A grader that restores what it saved before a window opened would give the window training's numbers.
    current = (isOfTraining(value) ? replacements.at(-1)?.draw : undefined) ?? value;
  },
};

/** Replaces `Math.random`, which code with a separate stream cannot do from then on. */
function assign(random: () => number): void {
  current = random;
  if (Math.random !== random) Object.defineProperty(Math, "random", accessor);
}

/** Whether a window or a hook is open, in which `Math.random` draws from a seeded stream. */
export const isMathRandomReplaced = (): boolean => replacements.length > 0;

/** Returns the caller's separate stream, or undefined if it has none. */
type StreamOf = () => (() => number) | undefined;
/** With the function to call if the caller tried to replace `Math.random`. */
const diversions = new Map<StreamOf, () => void>();
/** The value of `Math.random` outside of windows, and the training's function that it calls. */
let diverted: (() => number) | null = null;
let trainings: (() => number) | null = null;

const isOfTraining = (random: () => number): boolean =>
  random === native || random === diverted || random === trainings;

function separateStream(): (() => number) | undefined {
  for (const streamOf of diversions.keys()) {
    const stream = streamOf();
    if (stream !== undefined) return stream;
  }
  return undefined;
}

/**
 * Gives background work that draws from `Math.random` (a client's retry delays) a separate stream, so that it does not use up
 * the training's numbers. From now on `Math.random` calls `streamOf` at every draw: it returns the caller's stream, or undefined
 * to draw as before. Such work cannot replace `Math.random` either. Calling it again with the same function restores the
 * diversion if other code has replaced `Math.random`.
 *
 * @param onRefused Called when such work tries to replace `Math.random`.
 */
export function divertMathRandom(streamOf: StreamOf, onRefused: () => void = () => undefined): void {
  diversions.set(streamOf, onRefused);
  const training = replacements.length === 0 ? Math.random : native;
  if (training === diverted) return;
  trainings = training;
  diverted = () => (separateStream() ?? training)();
  native = diverted;
  if (replacements.length === 0) assign(diverted);
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
