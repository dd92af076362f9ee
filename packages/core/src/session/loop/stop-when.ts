import type {
  ConditionStop,
  PhaseClosing,
  Snapshot,
  StopCondition,
  TrainerCallback,
} from "@periodic-eval/contracts";
import { configError, errorMessage } from "@periodic-eval/contracts/options";
import { canJudge, evidenceFor } from "../../conditions/evidence.ts";
import { findMetric, type NamedCondition } from "../../conditions/find-metric.ts";
import { formatP, formatValue } from "../../statistics/format.ts";
import { familyAlpha } from "../../statistics/planned-comparisons.ts";
import { spentBy } from "../records/comparisons.ts";
import type { SessionRecords } from "../records/records.ts";
import { isMeasured } from "../../callback/reactions.ts";
import type { SessionLog } from "./log-events.ts";
import type { LoopControl } from "./loop-control.ts";
import type { PhaseProgress } from "./progress.ts";

interface StopRule extends NamedCondition {
  readonly evenAtStart: boolean;
}

interface StopWhenOptions {
  readonly conditions: readonly StopCondition[];
  readonly callbacks: readonly TrainerCallback[];
  readonly progress: PhaseProgress;
  readonly control: LoopControl;
  readonly records: SessionRecords;
  readonly log: SessionLog;
}

/**
 * Asks training to stop when a measurement meets a condition. The error level of 5 % is split over the planned measurements of each
 * evaluation, as for verdicts, and then evenly over the conditions. A stop is written before training hears of it, so that a
 * run that is killed then stops at the same step.
 */
export class StopWhen {
  readonly #options: StopWhenOptions;
  readonly #rules: readonly StopRule[];
  #stop: ConditionStop | null = null;
  /** A stop of an earlier session whose measurement is to be taken again. */
  #earlier: ConditionStop | null = null;

  constructor(options: StopWhenOptions) {
    this.#options = options;
    this.#rules = options.conditions.map((one, at) => ruleOf(one, at, options.callbacks));
  }

  /** The condition that ended training, or will at its step; null if none did. */
  get stop(): ConditionStop | null {
    return this.#stop;
  }

  /** See `Session.cleanStep`. */
  get cleanStep(): number | null {
    return this.#stop === null ? this.#cleanStepBefore(null) : this.#stop.cleanStep;
  }

  /**
   * Takes the stop that an earlier session of this phase wrote, unless its condition is gone. If its measurement belongs to the
   * resumed training it holds; if the steps to it are trained again, the measurement decides again, for the same step.
   */
  resume(stop: ConditionStop | undefined): void {
    if (stop === undefined || !this.#rules.some(({ text }) => text === stop.condition)) return;
    const { records, progress } = this.#options;
    const isSettled = records.known
      .settledOf(progress.phase, stop.id)
      .some((snapshot) => snapshot.step === stop.measuredAt && isMeasured(snapshot));
    if (isSettled) this.#stop = stop;
    else this.#earlier = stop;
  }

  /** Asks training to stop at the step of the stop. */
  atStep(): void {
    const { control, progress } = this.#options;
    if (this.#stop !== null && progress.current.step >= this.#stop.step)
      control.requestStop(this.#stop.reason);
  }

  /**
   * Tests the conditions on a snapshot.
   *
   * @throws PeriodicEvalError `config` for a condition that holds before step 1.
   */
  async check(snapshot: Snapshot): Promise<void> {
    const { progress } = this.#options;
    if (this.#stop !== null || snapshot.phase !== progress.phase || !isMeasured(snapshot)) return;
    const rules = this.#rules.filter(({ id }) => id === snapshot.id);
    for (const rule of rules) {
      const metric = rule.metric ?? snapshot.primary_metric;
      const level = this.#levelAt(snapshot);
      const p = metric === null || level === null ? null : evidenceFor(rule, metric, snapshot);
      if (p === null || p > level!) continue;
      const { phase, step: now, maxSteps } = progress.inRun();
      const reason = this.#reasonFor(rule, metric!, snapshot, p, level!);
      if (now === 0 && !rule.evenAtStart) throw holdsAtStart(rule, this.#rules.indexOf(rule), reason);
      const { id, step: measuredAt } = snapshot;
      const isRepeated = this.#earlier?.id === id && this.#earlier.measuredAt === measuredAt;
      const step = isRepeated ? Math.max(now, this.#earlier!.step) : now;
      const cleanStep = this.#cleanStepBefore(snapshot);
      this.#stop = { condition: rule.text, step, reason, id, measuredAt, cleanStep };
      await this.#write({ phase, step: now, maxSteps, finished: false, stop: this.#stop });
      return this.atStep();
    }
  }

  /** A stop that cannot be written still stops this training. */
  async #write(closing: PhaseClosing): Promise<void> {
    const { records, log } = this.#options;
    try {
      await records.store.recordClosing?.(closing);
    } catch (error) {
      log.warn("stopWhen", `the stop is not written: ${errorMessage(error)}`);
    }
  }

  /** Returns the level of one condition at a snapshot; null if the snapshot was not compared and is no baseline either. */
  #levelAt(snapshot: Snapshot): number | null {
    const spent = spentBy(snapshot);
    if (spent === null && snapshot.step > 0) return null;
    return (spent ?? familyAlpha) / this.#rules.length;
  }

  /** Returns the last step at which no condition was met, by the metric that was judged least recently. */
  #cleanStepBefore(evidence: Snapshot | null): number | null {
    const { records, progress } = this.#options;
    const steps = this.#rules.map(({ id, metric }) => {
      const isClean = (snapshot: Snapshot) =>
        isMeasured(snapshot) &&
        (id !== evidence?.id || snapshot.step < evidence.step) &&
        canJudge(metric ?? snapshot.primary_metric ?? "", snapshot);
      return records.known.settledOf(progress.phase, id).findLast(isClean)?.step ?? null;
    });
    return steps.length === 0 || steps.includes(null) ? null : Math.min(...steps.map(Number));
  }

  #reasonFor({ text }: StopRule, metric: string, snapshot: Snapshot, p: number, level: number): string {
    const { value, unit } = snapshot.metrics[metric]!;
    const { step, id } = snapshot;
    const split =
      this.#rules.length === 1
        ? ""
        : ` and over ${this.#rules.length} conditions, stricter than the page's verdict`;
    return `${text}: ${id}.${metric} is ${formatValue(value, unit)} at step ${step} (${formatP(p)}, tested at ${formatP(level).replace("p = ", "")}: 5 % split over the measurements${split})`;
  }
}

const where = "session options";

function ruleOf(given: StopCondition, at: number, callbacks: readonly TrainerCallback[]): StopRule {
  const { when, evenAtStart = false } = typeof given === "string" ? { when: given } : given;
  const path = ["stopWhen", at, ...(typeof given === "string" ? [] : ["when"])];
  return { ...findMetric(when, callbacks, { where, path }), evenAtStart };
}

const holdsAtStart = ({ text }: StopRule, at: number, reason: string) =>
  configError({
    where,
    path: ["stopWhen", at],
    got: `a condition that holds before step 1 (${reason})`,
    expected: "a condition that training can meet",
    fix: `Change the limit, or write { when: ${JSON.stringify(text)}, evenAtStart: true }, in YAML even_at_start, to train nothing then.`,
  });
