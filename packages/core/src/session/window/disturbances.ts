import { type SessionEvent, type Evidence, type Snapshot, PeriodicEvalError } from "@periodic-eval/contracts";
import type { Reporter } from "../records/reporter.ts";
import type { SnapshotWriter } from "../records/snapshot-writer.ts";
import { isBroken } from "./guarded.ts";

/** Where windows report progress and broken receipts, besides warnings and errors. */
export interface WindowReporter extends Reporter {
  /** Reports that `done` of `total` rows are measured. */
  measuring(event: Omit<Extract<SessionEvent, { kind: "measuring" }>, "kind">): void;
  /** Reports how the budget reduces measurements. */
  plan(message: string): void;
  /** Stops training, throws or does nothing, depending on `onBrokenReceipt`. */
  receiptBroken(message: string, makeError: () => PeriodicEvalError): void;
}

export function reportDisturbance(
  reporter: WindowReporter,
  evidence: Evidence,
  by: string,
  isFirst = true,
): void {
  const guard = evidence.part;
  const change = describeChange(evidence);
  if (isFirst) reporter.warn(`guard "${guard}"`, `training was disturbed by ${by}: ${change}`);
  const makeError = () =>
    new PeriodicEvalError({
      code: "receipt",
      where: `guard "${guard}"`,
      got: `a training disturbed by ${by} (${change})`,
      expected: "measurements that leave training unchanged",
      fix: 'Fix the callback or evaluation that changes training, or, in code, set onBrokenReceipt: "record" to continue.',
    });
  reporter.receiptBroken(`guard "${guard}" saw training disturbed by ${by}`, makeError);
}

export function describeChange({ before, after, note }: Evidence): string {
  const change = `${before ?? "unknown"} before, ${after ?? "unknown"} after`;
  return note === undefined ? change : `${change}; ${note}`;
}

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
