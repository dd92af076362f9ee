// The sentences that a console prints about a run. All loggers that print use them.
import {
  type RunProgress,
  type PhaseBegin,
  type SessionEvent,
  type Paired,
  type Snapshot,
  type Undisturbed,
  type PhaseEnd,
  grouped,
} from "@periodic-eval/contracts";
import { shellWord } from "@periodic-eval/contracts/options";
import {
  isVoid,
  warningsOf,
  edgesText,
  isWithinGrace,
  overheadOf,
  undisturbed,
  whyNotUndisturbed,
} from "@periodic-eval/store";
import { formatInterval, formatValue, humanizeName, secondsText, withinGrace } from "../statistics/format.ts";

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
  { step, maxSteps, elapsedSeconds, phase, loggedAt = step }: RunProgress,
  colours: Colours,
): string {
  // Leaves out the time of future windows, which is unknown before the first one.
  const left =
    maxSteps === null || step === 0 || step >= maxSteps ? null : (elapsedSeconds / step) * (maxSteps - step);
  const { loss, learning_rate: rate, tokens_per_second: tokens } = metrics;
  return joined([
    `${colours.bold(phase)} step ${step}${maxSteps === null ? "" : `/${maxSteps}`}`,
    loss === undefined ? null : `loss ${loss.toFixed(3)}${loggedAt === step ? "" : ` (step ${loggedAt})`}`,
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
export const measuresNothingText = ({ phase, isElsewhere }: PhaseBegin, colours: Colours): string =>
  `${colours.bold(phase)}  nothing is measured: no callback and no periodic_eval block asks for it. ` +
  (isElsewhere
    ? "Turn an evaluation on: capability, alignment or leakage."
    : "To measure capability, add new PeriodicCapabilityCallback(), or in YAML periodic_eval: {}. " +
      "With a block, PeriodicAlignmentCallback needs alignment: true, and PeriodicLeakageCallback leakage: true.");

/** Returns the line for a phase that does not begin at its start with nothing before it; null for all others. */
export function beginText(
  { phase, step, maxSteps, resumed, alreadyFinished, startsAgainAfter: reached, isElsewhere }: PhaseBegin,
  colours: Colours,
): string | null {
  const name = colours.bold(phase);
  const position = `step ${step}${maxSteps === null ? "" : ` of ${maxSteps}`}`;
  if (alreadyFinished === true) return `${name}  already finished at ${position}; nothing to do`;
  if (resumed) return `${name}  resumed from ${position}`;
  if (reached === undefined) return null;
  return (
    `${name}  starts again from step 1: an earlier training reached step ${reached}, and this one does not resume from a checkpoint of it. ` +
    "The measurements of this training replace the earlier ones in the folder. To go on from a checkpoint: " +
    (isElsewhere ? "resume_from_checkpoint=True with save_steps." : 'resume: "auto" with config.saveSteps.')
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
  const position = `${colours.bold(phase)} step ${step}`.trim();
  return joined([position, `measuring ${id} ${done}/${total}`, paceText(pace, usual)]);
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

/** Returns the reason of a measurement without what differs when it is repeated: budgets repeat a reason with other numbers. */
export const repeatedReason = ({ status, reason }: Pick<Snapshot, "status" | "reason">): string | null =>
  status === "skipped" && reason !== null ? reason.replaceAll(/[\d.]+/g, "") : reason;

const verdictColours = { better: "green", worse: "red", changed: "yellow", "no evidence": "dim" } as const;

export function verdictText(verdict: Paired["verdict"], colours: Colours): string | null {
  return verdict && colours[verdictColours[verdict]](verdict);
}

const joined = (parts: readonly (string | null)[], separator = "  "): string =>
  parts.filter((part) => part !== null).join(separator);

/**
 * Returns the last line of a run: `runs/1: 5 measured, 1 skipped, overhead 9.8 %, training undisturbed: yes. See the page: …`.
 *
 * @param run The run's folder; null if the run is a custom store.
 * @param early Where the last phase was interrupted, or ended by `stopWhen`; null if it was trained to its end.
 * @param lost Why nothing more could be written; null if everything was.
 */
export function closingText(
  run: string | null,
  snapshots: readonly Snapshot[],
  colours: Colours = noColours,
  early: (Pick<PhaseEnd, "phase" | "step" | "maxSteps"> & Partial<PhaseEnd>) | null = null,
  lost: string | null = null,
): string {
  const prefix = run === null ? "" : `${colours.bold(run)}: `;
  const page =
    run === null || lost !== null ? "" : `. See the page: npx periodic-eval report ${shellWord(run)}`;
  const facts = [
    early === null ? null : colours.yellow(earlyText(early)),
    lost === null ? null : colours.yellow(`writing stopped (${lost})`),
    measurementCount(snapshots),
    ...lastWith(snapshots, isDisabled).map((id) => colours.yellow(`${id} not measured`)),
    ...lastWith(snapshots, isNotJudged).map((id) => colours.yellow(`${id} cannot be judged`)),
    overheadText(snapshots),
    undisturbedText(undisturbed(snapshots), colours),
  ];
  return `${prefix}${facts.filter((fact) => fact !== null).join(", ")}${page}`;
}

/** Returns `em interrupted at step 23 of 200`, or `stop_when ended em at step 40 of 200 (capability worse)`. */
function earlyText(early: Pick<PhaseEnd, "phase" | "step" | "maxSteps"> & Partial<PhaseEnd>): string {
  const { phase, finished = false, stop } = early;
  return finished && stop !== undefined
    ? `stop_when ended ${phase} at ${placeText(early)} (${stop.condition})`
    : `${phase} interrupted at ${placeText(early)}`;
}

/** Returns `6 measurements`, or `2 measured, 3 skipped, 1 failed` if some were skipped or failed. */
export function measurementCount(snapshots: readonly Snapshot[]): string {
  const all = snapshots.length;
  const lost = (["skipped", "failed"] as const)
    .map((name) => [snapshots.filter(({ status }) => status === name).length, name] as const)
    .filter(([count]) => count > 0);
  if (lost.length === 0) return `${all} ${all === 1 ? "measurement" : "measurements"}`;
  const taken = lost.reduce((rest, [count]) => rest - count, all);
  return [[taken, "measured"], ...lost].map((part) => part.join(" ")).join(", ");
}

/** Returns the callbacks of whose last snapshot `is` is true. */
const lastWith = (snapshots: readonly Snapshot[], is: (last: Snapshot) => boolean): readonly string[] =>
  [...grouped(snapshots, ({ id }) => id)].flatMap(([id, ofId]) => (is(ofId.at(-1)!) ? [id] : []));

const isNotJudged = (snapshot: Snapshot): boolean =>
  snapshot.primary_metric !== null && isVoid(snapshot, snapshot.primary_metric);

const isDisabled = ({ warnings }: Snapshot): boolean => warnings.some(({ kind }) => kind === "disabled");

/** Returns `step 23 of 200`, or `step 23` if the length is unknown. */
const placeText = ({ step, maxSteps }: Pick<PhaseEnd, "step" | "maxSteps">): string =>
  `step ${step}${maxSteps === null ? "" : ` of ${maxSteps}`}`;

/**
 * Returns `overhead 9.8 %`, with the phase's name if there are several; null if none has one. Where the grace left everything
 * whole, the seconds count and not the share: `measuring 5.2 s, within the 60 s that the budget always allows`. A phase that was
 * measured only at its start and end has no limit: `measuring 5.2 s at start and end`, or `at the end` if only that was measured.
 */
function overheadText(snapshots: readonly Snapshot[]): string | null {
  const phases = [...grouped(snapshots, ({ phase }) => phase)];
  const ofPhases = phases.flatMap(([name, ofPhase]) => {
    const percent = overheadOf(ofPhase);
    const ofName = phases.length === 1 ? "" : ` (${name})`;
    const edges = edgesText(ofPhase);
    const limit = edges !== null ? "none" : isWithinGrace(ofPhase) ? "grace" : "share";
    return percent === null ? [] : [{ ofPhase, ofName, percent, limit, edges: edges ?? "" }];
  });
  const limited = ofPhases.filter(({ limit }) => limit === "share");
  const within = ofPhases.filter(({ limit }) => limit === "grace");
  const atEdges = grouped(
    ofPhases.filter(({ limit }) => limit === "none"),
    ({ edges }) => edges,
  );
  const secondsOf = (some: typeof ofPhases) =>
    some.map(({ ofPhase, ofName }) => `${secondsText(measuringSeconds(ofPhase))}${ofName}`).join(", ");
  const shares = limited.map(({ percent, ofName }) => `${percent.toFixed(1)} %${ofName}`);
  const parts = [
    ...(shares.length === 0 ? [] : [`overhead ${shares.join(", ")}`]),
    ...(within.length === 0 ? [] : [`measuring ${secondsOf(within)}, ${graceText(within[0]!.ofPhase)}`]),
    ...[...atEdges].map(([edges, some]) => `measuring ${secondsOf(some)} ${edges}`),
  ];
  return parts.length === 0 ? null : parts.join(", ");
}

const measuringSeconds = (phase: readonly Snapshot[]): number =>
  phase.reduce((sum, { timing }) => sum + timing.total_seconds, 0);

/** Returns `within the 60 s that the budget always allows`. */
export function graceText(phase: readonly Snapshot[]): string {
  const seconds = phase.flatMap(({ timing }) => timing.budget?.grace_seconds ?? []).at(-1);
  return seconds === undefined ? "within the budget" : withinGrace(seconds);
}

const answerColours = { yes: "green", no: "red", "not proven": "yellow", "not applicable": "dim" } as const;

/** Returns `training undisturbed: yes`, with the reason for every other answer; null if nothing was measured. */
export function undisturbedText(result: Undisturbed | null, colours: Colours = noColours): string | null {
  if (result === null) return null;
  const why = whyNotUndisturbed(result);
  const answer = colours[answerColours[result.answer]](result.answer);
  return `training undisturbed: ${answer}${why === null ? "" : ` (${why})`}`;
}
