import type { TrainerCallback } from "../../contracts/callback.ts";
import type { Evidence } from "../../contracts/snapshot.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { keyText } from "../../snapshots/run-order.ts";
import { measurementAt, newSnapshot, type Position } from "../records/new-snapshot.ts";
import type { SessionRecords } from "../records/records.ts";
import { ownerNameOf } from "../owners/left-behind.ts";
import { describeChange, isBroken, reportDisturbance, type WindowReporter } from "./run-guarded.ts";

/** One disturbance by one hook: the evidence of the first time, and how often it has happened since. */
interface Kept {
  readonly first: Evidence;
  readonly times: number;
  readonly lastStep: number;
}

/** Keeps the disturbances that guards saw around hooks, until a snapshot of the hook's callback takes them. */
export class HookEvidence {
  readonly #reporter: WindowReporter;
  readonly #kept = new Map<TrainerCallback, Map<string, Kept>>();
  /** Callback, guard and hook of each disturbance that was reported. */
  readonly #reported = new Set<string>();

  constructor(reporter: WindowReporter) {
    this.#reporter = reporter;
  }

  /** Keeps evidence and warns once: a hook usually repeats at every step what it did at the first. */
  keep(
    callback: TrainerCallback,
    hook: string,
    step: number,
    evidence: Evidence,
    by = `${hook} of callback "${callback.id}" at step ${step}`,
  ): void {
    // For a leak it does not matter which hook leaks.
    const what = evidence.advisory === true ? evidence.part : `${evidence.part} in ${hook}`;
    const kept = this.#kept.get(callback) ?? new Map<string, Kept>();
    const note = [evidence.note, `by ${by}`].filter(Boolean).join("; ");
    const { first, times } = kept.get(what) ?? { first: { ...evidence, note }, times: 0 };
    this.#kept.set(callback, kept.set(what, { first, times: times + 1, lastStep: step }));
    const name = `${callback.id}: ${what}`;
    const isFirst = !this.#reported.has(name);
    this.#reported.add(name);
    if (isBroken(evidence)) return reportDisturbance(this.#reporter, evidence, by, isFirst);
    if (!isFirst) return;
    this.#reporter.warn(
      `guard "${evidence.part}"`,
      `saw a change by ${by} (reported once): ${describeChange(evidence)}`,
    );
  }

  take(callback: TrainerCallback): Evidence[] {
    const kept = [...(this.#kept.get(callback)?.values() ?? [])];
    this.#kept.delete(callback);
    return kept.map(({ first, times, lastStep }) =>
      times === 1 || first.advisory === true
        ? first
        : { ...first, note: `${first.note}, and ${times} times in all up to step ${lastStep}` },
    );
  }

  /**
   * Writes the evidence that no snapshot has taken, at the end of a phase. It is added to the callback's snapshot of this step;
   * without one, a disturbance of training becomes a `failed` snapshot.
   */
  async recordRest(position: Position, records: SessionRecords): Promise<void> {
    const { known, writer } = records;
    for (const callback of this.#kept.keys()) {
      const evidence = this.take(callback);
      const key = { phase: position.phase, id: callback.id, step: position.progress.step };
      const existing = known.getSettled(key);
      if (existing === null) {
        if (evidence.some(isBroken)) await recordDisturbance(records, position, callback.id, evidence);
        continue;
      }
      try {
        const rows = await writer.rows(existing);
        await writer.commit({ ...existing, receipt: [...existing.receipt, ...evidence] }, rows);
      } catch (error) {
        // If the snapshot were written without its rows, they would be lost.
        this.#reporter.warn(
          ownerNameOf(callback),
          `the changes that its hooks made are missing from ${keyText(existing)}, whose rows cannot be read: ${errorMessage(error)}`,
        );
      }
    }
  }
}

async function recordDisturbance(
  { known, writer }: SessionRecords,
  position: Position,
  id: string,
  receipt: Evidence[],
): Promise<void> {
  const evaluation = { name: "hooks", version: "1" };
  const measurement = measurementAt(position, { id, crossed: [], on: "model", evaluation });
  const guards = [...new Set(receipt.filter(isBroken).map(({ part }) => `"${part}"`))].join(", ");
  const reason = `a hook of "${id}" disturbed training, as seen by ${guards}`;
  const snapshot = newSnapshot(measurement, { status: "failed", reason, receipt });
  const supersede = known.get(snapshot) === null ? null : "an interrupted training left it";
  await writer.commit(snapshot, [], { supersede });
}
