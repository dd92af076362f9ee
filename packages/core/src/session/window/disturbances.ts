import type { Evidence } from "../../contracts/snapshot.ts";
import { describeChange, isBroken, reportDisturbance, type WindowReporter } from "./run-guarded.ts";

/** Collects what guards saw change around hooks. The next snapshot takes it. */
export class Disturbances {
  readonly #reporter: WindowReporter;
  readonly #evidence = new Map<string, Evidence>();
  /** Callback, hook and guard of each change that was reported. */
  readonly #reported = new Set<string>();

  constructor(reporter: WindowReporter) {
    this.#reporter = reporter;
  }

  /**
   * Adds a change, and warns once: a hook usually repeats at every step what it did at the first.
   *
   * @param hook Names the hook and its callback: `onStepEnd of callback "em"`.
   */
  add(hook: string, step: number, change: Evidence): void {
    const by = `${hook} at step ${step}`;
    const key = `${change.part} in ${hook}`;
    const isFirst = !this.#reported.has(key);
    this.#reported.add(key);
    if (!this.#evidence.has(key)) {
      const note = [change.note, `by ${by}`].filter(Boolean).join("; ");
      this.#evidence.set(key, { ...change, note });
    }
    if (isBroken(change)) return reportDisturbance(this.#reporter, change, by, isFirst);
    if (!isFirst) return;
    const message = `saw a change by ${by} (reported once): ${describeChange(change)}`;
    this.#reporter.warn(`guard "${change.part}"`, message);
  }

  /** Returns and forgets the changes since the last snapshot. */
  take(): readonly Evidence[] {
    const changes = [...this.#evidence.values()];
    this.#evidence.clear();
    return changes;
  }
}
