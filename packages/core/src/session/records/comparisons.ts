import type {
  Metric,
  Row,
  MeasurementWarning,
  Paired,
  Snapshot,
  SnapshotKey,
  AnyEvaluation,
} from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { differencesOf, keyText, type EarlierRun } from "@periodic-eval/store";
import { primaryMetric } from "../../evaluations/kit/metric-kit.ts";
import { withSeededRandom, seedOf } from "../../random/streams.ts";
import { compareMeasurements } from "../../statistics/compare.ts";
import { alphaOfComparison } from "../../statistics/planned-comparisons.ts";
import { comparisonWarnings } from "./comparison-warnings.ts";
import type { Requested, Reporter } from "./new-snapshot.ts";
import type { KnownSnapshots, SnapshotWriter } from "./snapshot-writer.ts";

/** The snapshots that a measurement is compared with. */
export interface ComparisonPlan {
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
  plan(now: Snapshot, plannedComparisons: number | null): ComparisonPlan {
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
    plan: ComparisonPlan,
    whenGraded: (id: string) => Promise<void>,
  ): Promise<Pick<Snapshot, "paired" | "warnings">> {
    const { seed, familywise = "primary" } = this.#options;
    const warnings: MeasurementWarning[] = [];
    const primary = primaryMetric(metrics);
    const against = async (then: Baseline | null, alpha: number | null) => {
      const found = then && (await this.#rowsOf(then, key, whenGraded));
      if (then === null || found === null) return null;
      const { phase, step } = found.snapshot;
      const stream = seedOf(seed, key.phase, key.id, key.step, "compare", phase, step);
      const other = { rows: found.rows, ...placeOf(key.id, then) };
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
  { baseline, alpha }: ComparisonPlan,
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

export const baselineWords: readonly string[] = ["phase_start", "run_start", "adapter_off"];

/** Whether a baseline is a path. A path has a separator, so that a misspelt word is not taken for one. */
export const isBaselinePath = (baseline: string): boolean => /[\\/]/.test(baseline);

/** Returns the id under which the model without its adapter is measured. */
export const adapterOffId = (id: string): string => `${id}.adapter_off`;

/** A snapshot to compare with. */
export interface Baseline {
  readonly snapshot: Snapshot;
  /** The other run that it belongs to; null if it belongs to this one. */
  readonly earlier: EarlierRun | null;
}

/** Finds the baseline of a measurement: a start, a snapshot of an earlier run, or the model without its adapter. */
export class Baselines {
  readonly option: string;
  readonly #phase: string;
  readonly #known: KnownSnapshots;
  readonly #reporter: Reporter;
  #earlier: EarlierRun | null = null;
  /** Evaluations that are also measured without the adapter. */
  readonly #adapterOff = new Set<AnyEvaluation>();
  /** Ids for which the session has warned that they cannot be compared. */
  readonly #warned = new Set<string>();

  constructor(option: string, phase: string, known: KnownSnapshots, reporter: Reporter) {
    this.option = option;
    this.#phase = phase;
    this.#known = known;
    this.#reporter = reporter;
  }

  get isAdapterOff(): boolean {
    return this.option === "adapter_off";
  }

  useEarlierRun(run: EarlierRun): void {
    this.#earlier = run;
  }

  /** Measures this evaluation without the adapter, before its first measurement. */
  measureWithoutAdapter(evaluation: AnyEvaluation): void {
    this.#adapterOff.add(evaluation);
  }

  /** Whether the session itself adds the measurements of this id, as a baseline. */
  isBaselineId(id: string): boolean {
    return this.isAdapterOff && id.endsWith(adapterOffId(""));
  }

  /** Returns the requests, with a measurement of the model without its adapter before each that has no such baseline yet. */
  withBaselines(requests: readonly Requested[]): readonly Requested[] {
    if (!this.isAdapterOff) return requests;
    const added = requests.flatMap(({ id: of, evaluation, on = "model", callback }): readonly Requested[] => {
      const id = adapterOffId(of);
      const isThere = requests.some((other) => other.id === id) || this.#withoutAdapter(of) !== null;
      if (on === "base" || isThere || !this.#adapterOff.has(evaluation)) return [];
      return [{ id, evaluation, crossed: [], on: "base", callback }];
    });
    return [...added, ...requests];
  }

  /**
   * Finds the snapshot that a measurement is compared with by the option `baseline`.
   *
   * @param inPhase Returns the start of this id in a phase.
   */
  find(
    now: Snapshot,
    inPhase: (phase: string) => Snapshot | null,
  ): {
    readonly start: Snapshot | null;
    readonly earlier: EarlierRun | null;
    readonly isOtherModel: boolean;
  } {
    const earlier = this.#earlier;
    if (earlier !== null) return { start: earlier.startOf(now.phase, now.id), earlier, isOtherModel: false };
    // Evaluations that measure the base anyway have their start as the baseline.
    if (this.isAdapterOff && now.on === "model")
      return { start: this.#withoutAdapter(now.id), earlier, isOtherModel: true };
    const phase = this.option === "run_start" ? this.#firstPhase(now) : now.phase;
    return { start: inPhase(phase), earlier, isOtherModel: false };
  }

  /** Warns that measurements of `id` are not compared. `warnOnceNotCompared` then stays silent about this id. */
  warnNotCompared(id: string, message: string): void {
    this.#warned.add(id);
    this.#reporter.warn("comparison", message);
  }

  warnOnceNotCompared(id: string, message: string): void {
    if (!this.#warned.has(id)) this.warnNotCompared(id, message);
  }

  #withoutAdapter(id: string): Snapshot | null {
    const isWhole = ({ status }: Snapshot) => status === "complete" || status === "grading";
    return this.#known.settledOf(this.#phase, adapterOffId(id)).find(isWhole) ?? null;
  }

  #firstPhase({ id, phase }: Snapshot): string {
    return this.#known.all().find((one) => one.id === id)?.phase ?? phase;
  }
}
