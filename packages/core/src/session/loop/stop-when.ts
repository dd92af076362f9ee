import type {
  CallbackCondition,
  ConditionStop,
  PhaseClosing,
  Snapshot,
  StopCondition,
  TrainerCallback,
} from "@periodic-eval/contracts";
import { configError, errorMessage, pathText } from "@periodic-eval/contracts/options";
import { canJudge, evidenceFor } from "../../conditions/evidence.ts";
import { findMetric, groupFault, type NamedCondition } from "../../conditions/find-metric.ts";
import { formatP, formatValue } from "../../statistics/format.ts";
import { plannedSteps } from "../../schedule/crossings.ts";
import { alphaOfComparison } from "../../statistics/planned-comparisons.ts";
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
 * Asks training to stop when a measurement meets a condition. The error level of 5 % per phase is split evenly over the conditions, and
 * then over the planned measurements of the evaluation: for a verdict as for the verdicts of snapshots, for a limit over all of them. A stop is written before training hears of it, so that a
 * run that is killed then stops at the same step.
 */
export class StopWhen {
  readonly #options: StopWhenOptions;
  readonly #rules: readonly StopRule[];
  /** The rules, and the conditions that callbacks test themselves. */
  readonly #conditions: readonly CallbackCondition[];
  #stop: ConditionStop | null = null;
  /** A stop of an earlier session whose measurement is to be taken again. */
  #earlier: ConditionStop | null = null;
  /** Conditions of which a warning says that they cannot be tested. */
  readonly #warned = new Set<string>();

  constructor(options: StopWhenOptions) {
    this.#options = options;
    this.#rules = options.conditions.map((_, at) => ruleOf(at, options));
    this.#conditions = [...this.#rules, ...options.callbacks.flatMap(({ conditions = [] }) => conditions)];
    const texts = this.#rules.map(({ fullText }) => fullText);
    const repeated = this.#rules.find(({ fullText }, at) => texts.indexOf(fullText) < at);
    if (repeated !== undefined) throw repeatedCondition(repeated);
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

  get hasRules(): boolean {
    return this.#rules.length > 0;
  }

  /** Whether a limit is among the conditions, which the start may meet, or a group, which it shows to exist. */
  get needsStart(): boolean {
    const hasLimit = this.#rules.some(({ test }) => test.kind === "value");
    return hasLimit || this.#conditions.some(({ metric }) => metric?.includes("/") === true);
  }

  /**
   * Tests the conditions on a snapshot, and whether it has the groups that conditions of callbacks name.
   *
   * @throws PeriodicEvalError `config` for a condition that the run's start meets, or on a group that the start does not have.
   */
  async check(snapshot: Snapshot): Promise<void> {
    const { progress } = this.#options;
    if (this.#stop !== null || snapshot.phase !== progress.phase || !isMeasured(snapshot)) return;
    const { phase, step: now, maxSteps } = progress.inRun();
    const isStart = now === 0 && snapshot.run_step === 0;
    this.#checkGroups(snapshot, isStart);
    for (const rule of this.#rules.filter(({ id }) => id === snapshot.id)) {
      const outcome = this.#test(rule, snapshot);
      if (outcome === "not compared")
        this.#warnOnce(rule, snapshot, `"${snapshot.id}" is not compared with a baseline`);
      if (typeof outcome !== "object") continue;
      const reason = this.#reasonFor(rule, snapshot, outcome);
      if (isStart && !rule.evenAtStart) throw holdsAtStart(rule, reason);
      const { id, step: measuredAt } = snapshot;
      const isRepeated = this.#earlier?.id === id && this.#earlier.measuredAt === measuredAt;
      const step = isRepeated ? Math.max(now, this.#earlier!.step) : now;
      const cleanStep = this.#cleanStepBefore(snapshot);
      this.#stop = { condition: rule.text, step, reason, id, measuredAt, cleanStep };
      await this.#write({ phase, step: now, maxSteps, finished: false, stop: this.#stop });
      return this.atStep();
    }
  }

  #checkGroups(snapshot: Snapshot, isStart: boolean): void {
    // The subset of a partial measurement may lack a group.
    if (snapshot.status !== "complete") return;
    for (const condition of this.#conditions.filter(({ id }) => id === snapshot.id)) {
      const fault = groupFault(condition, snapshot);
      if (fault === null) continue;
      if (isStart) throw configError({ ...condition.location, ...fault });
      this.#warnOnce(condition, snapshot, `got ${fault.got}, expected ${fault.expected}. ${fault.fix}`);
    }
  }

  /** Returns the evidence that a snapshot meets a condition, or why it does not. */
  #test(rule: StopRule, snapshot: Snapshot): Evidence | "clean" | "not judged" | "not compared" {
    const metric = rule.metric ?? snapshot.primary_metric ?? "";
    if (!canJudge(metric, snapshot)) return "not judged";
    const isLimit = rule.test.kind === "value";
    // The baseline is what verdicts are about.
    if (!isLimit && snapshot.step === 0 && snapshot.paired.baseline === null) return "clean";
    const shared = isLimit ? this.#levelOfLimit(snapshot) : spentBy(snapshot);
    if (shared === null) return "not compared";
    const level = shared / this.#rules.length;
    const p = evidenceFor(rule, metric, snapshot);
    return p !== null && p <= level ? { metric, p, level } : "clean";
  }

  /** Returns the level of a limit: 5 % over the planned measurements, the start among them. It needs no baseline. */
  #levelOfLimit({ phase, id, step, max_steps: maxSteps }: Snapshot): number {
    const { records, callbacks } = this.#options;
    const { triggers } = callbacks.find((callback) => callback.id === id) ?? {};
    const planned = triggers === undefined ? null : (plannedSteps(triggers, maxSteps)?.length ?? null);
    const earlier = records.known.settledOf(phase, id).filter((past) => past.step < step && isMeasured(past));
    const spent: number[] = [];
    for (const _ of earlier) spent.push(alphaOfComparison({ spent, planned }));
    return alphaOfComparison({ spent, planned });
  }

  #warnOnce({ text, location }: CallbackCondition, { step }: Snapshot, why: string): void {
    const key = pathText(location.path).slice(1);
    if (this.#warned.has(key)) return;
    this.#warned.add(key);
    this.#options.log.warn(key, `"${text}" cannot be tested at step ${step}: ${why}`);
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

  /**
   * Returns the last step at which no condition was met, by the metric that was judged least recently: 0, where training began, for one
   * that was not judged yet. Null if the start itself is the evidence, and without conditions.
   */
  #cleanStepBefore(evidence: Snapshot | null): number | null {
    const { records, progress } = this.#options;
    if (this.#rules.length === 0 || evidence?.step === 0) return null;
    const steps = this.#rules.map((rule) => {
      const isClean = (snapshot: Snapshot) =>
        isMeasured(snapshot) &&
        (rule.id !== evidence?.id || snapshot.step < evidence.step) &&
        this.#test(rule, snapshot) === "clean";
      return records.known.settledOf(progress.phase, rule.id).findLast(isClean)?.step ?? 0;
    });
    return Math.min(...steps);
  }

  #reasonFor({ text }: StopRule, snapshot: Snapshot, { metric, p, level }: Evidence): string {
    const { value, unit } = snapshot.metrics[metric]!;
    const { step, id } = snapshot;
    const split =
      this.#rules.length === 1
        ? ""
        : ` and over ${this.#rules.length} conditions, stricter than the page's verdict`;
    return `${text}: ${id}.${metric} is ${formatValue(value, unit)} at step ${step} (${formatP(p)}, tested at ${formatP(level).replace("p = ", "")}: 5 % split over the measurements${split})`;
  }
}

interface Evidence {
  readonly metric: string;
  readonly p: number;
  readonly level: number;
}

function ruleOf(at: number, { conditions, callbacks }: StopWhenOptions): StopRule {
  const condition = conditions[at]!;
  const {
    when,
    evenAtStart = false,
    location,
  } = typeof condition === "string" ? { when: condition } : condition;
  const path = typeof condition === "string" ? ["stopWhen", at] : ["stopWhen", at, "when"];
  return {
    ...findMetric(when, callbacks, location ?? { where: "session options", path }),
    evenAtStart,
  };
}

const repeatedCondition = ({ text, location }: StopRule) =>
  configError({
    ...location,
    value: text,
    expected: "each condition once: they share the error level",
    fix: "Remove it.",
  });

const holdsAtStart = ({ text, location }: StopRule, reason: string) =>
  configError({
    ...location,
    got: `a condition that holds before step 1 (${reason})`,
    expected: "a condition that training can meet",
    fix: `Change the limit, or write { when: ${JSON.stringify(text)}, ${location.where === "session options" ? "evenAtStart" : "even_at_start"}: true }, to train nothing then.`,
  });
