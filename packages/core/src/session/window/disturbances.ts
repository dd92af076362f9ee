import type { Evidence, Snapshot } from "@periodic-eval/contracts";
import type { SnapshotWriter } from "../records/snapshot-writer.ts";
import { describeChange, isBroken, reportDisturbance, type WindowReporter } from "./run-guarded.ts";

/** Collects what guards saw change around hooks. The next snapshot takes it; after the last one, that one. */
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
   * @param callback Names the callback: `callback "em"`.
   */
  add(callback: string, hook: string, step: number, change: Evidence): void {
    const by = `${hook} of ${callback} at step ${step}`;
    // For a leak it does not matter which hook leaks.
    const key = `${change.part} in ${change.advisory === true ? "" : hook} of ${callback}`;
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

  /** Adds what no snapshot has taken to the last snapshot of the phase, if it shows that training was disturbed. */
  async recordRest(last: Snapshot | undefined, writer: SnapshotWriter): Promise<void> {
    const changes = this.take();
    if (last === undefined || !changes.some(isBroken)) return;
    const rows = await writer.rowsOrWarn(last, "so it lacks what hooks changed after it");
    if (rows !== null) await writer.commit({ ...last, receipt: [...last.receipt, ...changes] }, rows);
  }
}
