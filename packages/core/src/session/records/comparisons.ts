import type {
  Metric,
  Row,
  MeasurementWarning,
  Paired,
  Snapshot,
  SnapshotKey,
} from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { differencesOf, keyText } from "@periodic-eval/store";
import { primaryMetric } from "../../evaluations/kit/metric-kit.ts";
import { withSeededRandom } from "../../random/guards.ts";
import { seedOf } from "../../random/streams.ts";
import { compareMeasurements } from "../../statistics/compare.ts";
import { alphaOfComparison } from "../../statistics/planned-comparisons.ts";
import { comparisonWarnings } from "./comparison-warnings.ts";
import type { Reporter } from "./reporter.ts";
import type { SnapshotWriter } from "./snapshot-writer.ts";
import type { KnownSnapshots } from "./known-snapshots.ts";
import type { Baseline, Baselines } from "./baselines.ts";

/** The snapshots that a measurement is compared with. */
export interface ComparedSnapshots {
  readonly baseline: Baseline | null;
  readonly previous: Snapshot | null;
  /** The error level that the comparison with the baseline may spend; null without a baseline, or if the phase has spent all. */
  readonly alpha: number | null;
}

export interface ComparisonsOptions {
  readonly seed: string;
  readonly familywise: "primary" | "all" | undefined;
  readonly known: KnownSnapshots;
  readonly writer: SnapshotWriter;
  readonly baselines: Baselines;
  readonly reporter: Reporter;
}

/** Compares measurements with their baseline and with the previous one. */
export class Comparisons {
  readonly #options: ComparisonsOptions;

  constructor(options: ComparisonsOptions) {
    this.#options = options;
  }

  /**
   * Chooses what a measurement is compared with: the baseline, and the last snapshot before it in this phase. Both have the
   * same id and setup. The levels that earlier measurements of the phase spent are read from their snapshots.
   *
   * @param plannedComparisons Comparisons with the baseline that the phase will make in all; null if unknown.
   */
  plan(now: Snapshot, plannedComparisons: number | null): ComparedSnapshots {
    const { phase, step } = now;
    const before = this.#measured(phase, now).filter((snapshot) => snapshot.step < step);
    const inPhase = (of: string) => (of === phase ? before : this.#measured(of, now)).find(isStart) ?? null;
    const baseline = this.#baselineOf(now, inPhase);
    const previous = before.filter((snapshot) => differencesOf(snapshot, now).length === 0).at(-1) ?? null;
    if (baseline === null) return { baseline, previous, alpha: null };
    const spent = before.map(spentBy).filter((alpha) => alpha !== null);
    // A start that is not its own baseline is compared too.
    const isStartCompared =
      step === 0 || before.some((snapshot) => snapshot.step === 0 && spentBy(snapshot) !== null);
    const planned =
      plannedComparisons !== null && isStartCompared ? plannedComparisons + 1 : plannedComparisons;
    const alpha = alphaOfComparison({ spent, planned });
    // A finished phase that continues has spent its level: at level 0, even the clearest change would be "no evidence".
    return { baseline, previous, alpha: alpha > spentLevel ? alpha : null };
  }

  /**
   * Compares rows with those of the baseline and of the previous snapshot. The warnings are those that the comparison with the
   * baseline shows.
   *
   * @param whenGraded Resolves when the grading of an id that is under way is over.
   */
  async compare(
    key: SnapshotKey & Pick<Snapshot, "evaluation">,
    metrics: Readonly<Record<string, Metric<Row>>>,
    rows: readonly Row[],
    plan: ComparedSnapshots,
    whenGraded: (id: string) => Promise<void>,
  ): Promise<Pick<Snapshot, "paired" | "warnings">> {
    const { seed, familywise = "primary" } = this.#options;
    const warnings: MeasurementWarning[] = [];
    const primary = primaryMetric(metrics);
    const against = async (then: Baseline | null, alpha: number | null) => {
      const baseline = then && (await this.#rowsOf(then, key, whenGraded));
      if (then === null || baseline === null) return null;
      const { phase, step } = baseline.snapshot;
      const stream = seedOf(seed, key.phase, key.id, key.step, "compare", phase, step);
      const other = { rows: baseline.rows, ...placeOf(key.id, then) };
      return withSeededRandom(stream, () => {
        const paired = compareMeasurements(metrics, rows, other, {
          seed: stream,
          primary,
          alpha,
          familywise,
        });
        const context = { evaluation: key.evaluation, seed: stream };
        if (then === plan.baseline)
          warnings.push(...comparisonWarnings(metrics, rows, other, paired, context));
        return paired;
      });
    };
    const baseline = await against(plan.baseline, plan.alpha);
    const previous = plan.previous && { snapshot: plan.previous, earlier: null };
    return { paired: { baseline, previous: await against(previous, null) }, warnings };
  }

  /** Returns the settled snapshots in a phase that measured what `now` measures, by step. */
  #measured(phase: string, now: Snapshot): readonly Snapshot[] {
    return this.#options.known
      .settledOf(phase, now.id)
      .filter(
        ({ evaluation, status }) =>
          evaluation === now.evaluation &&
          (status === "complete" || status === "grading" || status === "partial"),
      );
  }

  #baselineOf(now: Snapshot, inPhase: (phase: string) => Snapshot | null): Baseline | null {
    const { baselines } = this.#options;
    const { start, earlier, isOtherModel } = baselines.find(now, inPhase);
    if (start === null) return null;
    const different = differencesOf(start, now, isOtherModel ? "on" : null);
    if (different.length === 0 && (earlier === null || start.status === "complete"))
      return { snapshot: start, earlier };
    const why = different.length === 0 ? `its status is "${start.status}"` : `it has ${different.join(", ")}`;
    baselines.warnOnceNotCompared(now.id, `${keyText(now)} is not compared with ${keyText(start)}: ${why}`);
    return null;
  }

  /** Returns a snapshot as it is now, with its rows; null if it failed or its rows cannot be read. */
  async #rowsOf(
    { snapshot, earlier }: Baseline,
    key: SnapshotKey,
    whenGraded: (id: string) => Promise<void>,
  ): Promise<{ readonly snapshot: Snapshot; readonly rows: readonly Row[] } | null> {
    const { known, writer, reporter } = this.#options;
    // Gradings of one id run one after the other; a baseline without the adapter has another id.
    if (earlier === null && snapshot.id !== key.id) await whenGraded(snapshot.id);
    // Since the comparison was planned, grading may have completed the snapshot or failed.
    const now = earlier === null ? known.get(snapshot) : snapshot;
    if (now === null || now.status === "failed" || now.status === "grading") return null;
    try {
      return { snapshot: now, rows: await (earlier === null ? writer.rows(now) : earlier.rows(now)) };
    } catch (error) {
      const message = `${keyText(key)} is not compared with ${keyText(now)}, whose rows cannot be read`;
      reporter.warn("comparison", `${message}: ${errorMessage(error)}`);
      return null;
    }
  }
}

/** A level below this is spent: sums of levels are rounded. */
const spentLevel = 1e-12;

/** Only a whole measurement is a baseline. */
const isStart = ({ crossed, status }: Snapshot) => crossed.includes("start") && status !== "partial";

/**
 * Returns the error level that a snapshot's comparison with the baseline spent, or reserves while it is being graded: that of
 * the primary metric, or the level that all metrics shared, of which Holm's method gives the smallest p of m a level of 1/m.
 * Null if nothing could be compared.
 */
export function spentBy({ paired }: Snapshot): number | null {
  const levels = Object.values(paired.baseline ?? {}).flatMap(({ alpha }) => (alpha === null ? [] : [alpha]));
  return levels.length === 0 ? null : levels.length * Math.min(...levels);
}

/** Returns the `paired` of a snapshot whose rows are not graded yet. It spends the error level once, even after a crash. */
export function reserveComparison(
  id: string,
  { baseline, alpha }: ComparedSnapshots,
  primary: string | null,
): Snapshot["paired"] {
  if (baseline === null || primary === null) return { baseline: null, previous: null };
  const reserved: Paired = {
    ...placeOf(id, baseline),
    n_pairs: 0,
    delta: null,
    ci95: null,
    test: null,
    p_value: null,
    alpha,
    minimal_detectable_change: null,
    verdict: null,
    exploratory: false,
  };
  return { baseline: { [primary]: reserved }, previous: null };
}

function placeOf(
  ofId: string,
  { snapshot, earlier }: Baseline,
): Pick<Paired, "phase" | "step" | "id" | "run"> {
  const { phase, step, id } = snapshot;
  return {
    phase,
    step,
    ...(id !== ofId && { id }),
    ...(earlier !== null && { run: earlier.path }),
  };
}
