import type { PhaseBegin, RunProgress, Snapshot } from "@periodic-eval/contracts";
import { beginText, measuresNothingText, type Colours } from "./sentences.ts";

/** A training that says nothing for longer is taken for one that hangs. */
const longestSilenceSeconds = 60;
/** A measurement that takes less time is reported by its result only. */
const shortMeasurementSeconds = 1;
/** Between two lines about one measurement on a display that keeps every line. */
const measuringLineSeconds = 60;

/** Decides which progress is worth a line of its own. */
export class ProgressLines {
  readonly #clock: () => number;
  #phase = "";
  #hasSaidNothing = false;
  #lastTenth = -1;
  #lastElapsed = 0;
  /** Seconds of the last measurement, by id. */
  readonly #seconds = new Map<string, number>();
  #lastMeasuring: number;
  /** The measurement of the last event. */
  #measurement = "";

  constructor(clock: () => number) {
    this.#clock = clock;
    this.#lastMeasuring = clock();
  }

  /** Returns the lines for the begin of a phase; that nothing is measured only once, not for every phase of a pipeline. */
  beginning(at: PhaseBegin, colours: Colours): readonly string[] {
    const isNothingDue = at.measuresNothing === true && !this.#hasSaidNothing;
    this.#hasSaidNothing ||= isNothingDue;
    const text = beginText(at, colours);
    return [...(text === null ? [] : [text]), ...(isNothingDue ? [measuresNothingText(at, colours)] : [])];
  }

  /** Forgets what the next run must say again. */
  close(): void {
    this.#hasSaidNothing = false;
  }

  isDue({ phase, step, maxSteps, elapsedSeconds }: RunProgress): boolean {
    const tenth = maxSteps === null ? 0 : Math.floor((10 * step) / maxSteps);
    const isSilent = elapsedSeconds - this.#lastElapsed >= longestSilenceSeconds;
    if (phase === this.#phase && tenth === this.#lastTenth && !isSilent) return false;
    this.#phase = phase;
    this.#lastTenth = tenth;
    this.#lastElapsed = elapsedSeconds;
    return true;
  }

  isMeasuringDue({ id, step }: { readonly id: string; readonly step: number }): boolean {
    const now = this.#clock();
    const measurement = `${id} ${step}`;
    const isFirst = measurement !== this.#measurement;
    const isDue = isFirst
      ? (this.#seconds.get(id) ?? Infinity) >= shortMeasurementSeconds
      : now - this.#lastMeasuring >= measuringLineSeconds;
    this.#measurement = measurement;
    if (isDue || isFirst) this.#lastMeasuring = now;
    return isDue;
  }

  /** Returns the seconds of the last measurement; null if there is none. */
  secondsOf(id: string): number | null {
    return this.#seconds.get(id) ?? null;
  }

  learn({ id, timing, status }: Snapshot): void {
    this.#measurement = "";
    if (status !== "skipped") this.#seconds.set(id, timing.total_seconds);
  }
}
