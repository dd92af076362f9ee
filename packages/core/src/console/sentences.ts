// The sentences that a console prints about a run. All loggers that print use them.
import type { Progress, PhaseBegin, SessionEvent, Paired, Snapshot } from "@periodic-eval/contracts";
import { isVoid, warningsOf } from "@periodic-eval/store";
import { formatInterval, formatValue, humanizeName } from "../statistics/format.ts";

type Paint = (text: string) => string;

/** Emphasis of a line's parts; `createColors` of picocolors returns one for terminals. */
export interface Colours {
  readonly bold: Paint;
  readonly dim: Paint;
  readonly red: Paint;
  readonly green: Paint;
  readonly yellow: Paint;
}

const plain: Paint = (text) => text;

/** Text without any emphasis. */
export const noColours: Colours = { bold: plain, dim: plain, red: plain, green: plain, yellow: plain };

/** A rate over less time says little. */
const shortestPaceSeconds = 0.5;

/** Returns `em step 24/40  loss 1.786  learning rate 5.0e-4  2.4 steps/s  1041 tokens/s  11 s of training left`. */
export function trainingText(
  metrics: Readonly<Record<string, number>>,
  { step, maxSteps, elapsedSeconds, phase }: Progress & { readonly phase: string },
  colours: Colours,
): string {
  // Leaves out the time of future windows, which is unknown before the first one.
  const left =
    maxSteps === null || step === 0 || step >= maxSteps ? null : (elapsedSeconds / step) * (maxSteps - step);
  const { loss, learning_rate: rate, tokens_per_second: tokens } = metrics;
  return joined([
    `${colours.bold(phase)} step ${step}${maxSteps === null ? "" : `/${maxSteps}`}`,
    loss === undefined ? null : `loss ${loss.toFixed(3)}`,
    rate === undefined ? null : `learning rate ${rate === 0 ? "0" : rate.toExponential(1)}`,
    step === 0 || elapsedSeconds === 0 ? null : speedText(step / elapsedSeconds),
    tokens === undefined ? null : `${Math.round(tokens)} tokens/s`,
    left === null ? null : `${durationText(left)} of training left`,
  ]);
}

/** Returns `2.4 steps/s`, or `12 s/step` for slow training. */
function speedText(stepsPerSecond: number): string {
  return stepsPerSecond >= 1
    ? `${Number(stepsPerSecond.toPrecision(2))} steps/s`
    : `${Number((1 / stepsPerSecond).toPrecision(2))} s/step`;
}

/** Returns `11 s`, `5 min 20 s` or `2 h 5 min`, rounded up. */
export function durationText(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  return minutes < 60
    ? joined([`${minutes} min`, whole % 60 === 0 ? null : `${whole % 60} s`], " ")
    : joined([`${Math.floor(minutes / 60)} h`, minutes % 60 === 0 ? null : `${minutes % 60} min`], " ");
}

/** Returns the line for a phase in which no callback can measure anything. */
export const measuresNothingText = (phase: string, colours: Colours): string =>
  `${colours.bold(phase)}  nothing is measured: no callback and no periodic_eval block asks for it. ` +
  "To measure capability, add new PeriodicCapabilityCallback(), or in YAML periodic_eval: {}. " +
  "With a block, PeriodicAlignmentCallback needs alignment: true, and PeriodicLeakageCallback leakage: true.";

/** Returns the line for a phase that does not begin at its start with nothing before it; null for all others. */
export function beginText(
  { phase, step, maxSteps, resumed, alreadyFinished, startsAgainAfter: reached }: PhaseBegin,
  colours: Colours,
): string | null {
  const name = colours.bold(phase);
  const place = `step ${step}${maxSteps === null ? "" : ` of ${maxSteps}`}`;
  if (alreadyFinished === true) return `${name}  already finished at ${place}; nothing to do`;
  if (resumed) return `${name}  resumed from ${place}`;
  if (reached === undefined) return null;
  return (
    `${name}  starts again from step 1: an earlier training reached step ${reached}, and this one does not resume from a checkpoint of it. ` +
    'Trainers resume with resume: "auto" from what config.saveSteps saved; your own loop keeps session.save() and passes it as resume.'
  );
}

type Measuring = Extract<SessionEvent, { kind: "measuring" }>;

/**
 * Returns `em step 24  measuring capability 64/100  350 tokens/s  12 s left`.
 *
 * @param usual Seconds of the last measurement of this kind, which say what is left before the first row; null if unknown.
 */
export function measuringText(
  { id, step, ...pace }: Measuring,
  phase: string,
  colours: Colours,
  usual: number | null = null,
): string {
  const { done, total } = pace;
  const place = `${colours.bold(phase)} step ${step}`.trim();
  return joined([place, `measuring ${id} ${done}/${total}`, paceText(pace, usual)]);
}

/** Returns `350 tokens/s  12 s left`; null where nothing is known. */
export function paceText(
  { done, total, seconds, tokens }: Pick<Measuring, "done" | "total" | "seconds" | "tokens">,
  usual: number | null = null,
): string | null {
  if (seconds < shortestPaceSeconds) return null;
  const left = done > 0 ? (seconds / done) * (total - done) : usual === null ? null : usual - seconds;
  const parts = [
    tokens === null ? null : `${Math.round(tokens / seconds)} tokens/s`,
    left !== null && left > 0 ? `${durationText(left)} left` : null,
  ];
  return parts.every((part) => part === null) ? null : joined(parts);
}

/**
 * Returns `capability  accuracy 84.0 % [75.6, 89.9]  worse`: the primary metric and its verdict against the baseline, or why it
 * cannot be judged. In a measurement of leakage, the rate of the source comes first.
 */
export function snapshotText(snapshot: Snapshot, colours: Colours): string {
  const { id, status, reason, metrics, primary_metric: primary, paired } = snapshot;
  if (status === "grading") return `${id} measured, grading continues`;
  const metric = primary === null ? undefined : metrics[primary];
  if (primary === null || !metric) return `${id} ${status}${reason === null ? "" : `: ${reason}`}`;
  const names = primary === "leakage_rate" && metrics["source_rate"] ? ["source_rate", primary] : [primary];
  const values = names.map((name) => {
    const { value, ci95, unit } = metrics[name]!;
    return `${humanizeName(name)} ${formatValue(value, unit)} ${colours.dim(formatInterval(ci95, unit))}`;
  });
  const verdict = paired.baseline?.[primary]?.verdict ?? null;
  return joined([
    id,
    ...values,
    status === "complete" ? null : status,
    isVoid(snapshot, primary) ? null : verdictText(verdict, colours),
    ...warningsOf(snapshot, primary).map(({ message }) => colours.yellow(`warning: ${message}`)),
  ]);
}

const verdictColours = { better: "green", worse: "red", changed: "yellow", "no evidence": "dim" } as const;

export function verdictText(verdict: Paired["verdict"], colours: Colours): string | null {
  return verdict && colours[verdictColours[verdict]](verdict);
}

const joined = (parts: readonly (string | null)[], separator = "  "): string =>
  parts.filter((part) => part !== null).join(separator);
