import { Worker } from "node:worker_threads";

/**
 * Milliseconds between two beats, and the shortest gaps that are a pause, later and before the first beat. On a machine with 12
 * times its load, beats were up to 0.5 s late, and the thread took 2.7 s to start.
 */
const [beatMs, pauseMs, firstPauseMs] = [500, 5000, 20_000];

/** A test may replace the clock of `process`. */
const { hrtime } = process;

/** Returns milliseconds since an arbitrary origin, modulo 2³². The origin is the same in all threads. */
function milliseconds(): number {
  const [seconds, nanoseconds] = hrtime();
  return (1000 * seconds + nanoseconds / 1e6) | 0;
}

/**
 * Writes the time of its last beat at 0, and the milliseconds of all pauses at 1. The beats before and after a pause may be as
 * far from it as beats are from each other, so two are subtracted.
 */
const program = `
const { workerData: beats } = require("node:worker_threads");
let longest = ${firstPauseMs};
const beat = () => {
  const [seconds, nanoseconds] = process.hrtime();
  const now = (1000 * seconds + nanoseconds / 1e6) | 0;
  const gap = (now - beats[0]) | 0;
  if (gap > longest) Atomics.add(beats, 1, gap - ${2 * beatMs});
  longest = ${pauseMs};
  Atomics.store(beats, 0, now || 1);
  Atomics.notify(beats, 0);
};
beat();
setInterval(beat, ${beatMs});
`;

let beats: Int32Array | null = null;

/**
 * Returns the seconds for which this process was stopped (Ctrl-Z, SIGSTOP, a frozen container, a paused or sleeping machine)
 * since the first call. A thread that only beats is late by then: work of any kind, also a call that blocks the main thread, does
 * not delay it. Pauses of less than 5 s are not seen, nor is a sleep of Linux, which stops the clock itself.
 */
export function pausedSeconds(): number {
  beats ??= startBeats();
  const last = Atomics.load(beats, 0);
  // Right after a pause the beat is late, and comes now.
  if (last !== 0 && ((milliseconds() - last) | 0) > pauseMs) Atomics.wait(beats, 0, last, beatMs);
  return Atomics.load(beats, 1) / 1000;
}

function startBeats(): Int32Array {
  const shared = new Int32Array(new SharedArrayBuffer(8));
  shared[0] = milliseconds() || 1;
  // Its output is not piped, which would add listeners to the output of the process.
  const options = { eval: true, execArgv: [], env: {}, stdout: true, stderr: true };
  // Without a thread no pause is seen.
  const stop = () => void Atomics.store(shared, 0, 0);
  try {
    new Worker(program, { ...options, workerData: shared })
      .on("error", () => undefined)
      .on("exit", stop)
      .unref();
  } catch {
    stop();
  }
  return shared;
}
