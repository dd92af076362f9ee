import type { Snapshot, AnyEvaluation } from "@periodic-eval/contracts";
import type { EarlierRun } from "@periodic-eval/store";
import type { KnownSnapshots } from "./known-snapshots.ts";
import type { Requested } from "./new-snapshot.ts";
import type { Reporter } from "./reporter.ts";

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
    return this.#known.all().find((snapshot) => snapshot.id === id)?.phase ?? phase;
  }
}
