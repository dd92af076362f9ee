import type { Paired, Progress, SessionEvent, Snapshot } from "@periodic-eval/core";
import { formatInterval, formatValue, humanizeName } from "@periodic-eval/core/statistics";
import type pc from "picocolors";

export type Colours = ReturnType<typeof pc.createColors>;

/** Returns `em step 24/40  loss 1.786  1041 tokens/s  11 s of training left`. */
export function trainingText(
  metrics: Readonly<Record<string, number>>,
  { step, maxSteps, elapsedSeconds, phase }: Progress & { readonly phase: string },
  colours: Colours,
): string {
  // Leaves out the time of future windows, which is unknown before the first one.
  const left = maxSteps === null || step === 0 ? null : (elapsedSeconds / step) * (maxSteps - step);
  const { loss, tokens_per_second: speed } = metrics;
  return joined([
    `${colours.bold(phase)} step ${step}${maxSteps === null ? "" : `/${maxSteps}`}`,
    loss === undefined ? null : `loss ${loss.toFixed(3)}`,
    speed === undefined ? null : `${Math.round(speed)} tokens/s`,
    left === null ? null : `${Math.ceil(left)} s of training left`,
  ]);
}

type Measuring = Extract<SessionEvent, { kind: "measuring" }>;

/** Returns `em step 24  measuring capability 64/100`. */
export function measuringText({ id, step, done, total }: Measuring, phase: string, colours: Colours): string {
  return joined([`${colours.bold(phase)} step ${step}`.trim(), `measuring ${id} ${done}/${total}`]);
}

/** Returns `capability  accuracy 84.0 % [75.6, 89.9]  worse`: the primary metric and its verdict against the baseline. */
export function snapshotText(
  { id, status, reason, metrics, primary_metric: primary, paired }: Snapshot,
  colours: Colours,
): string {
  const metric = primary === null ? undefined : metrics[primary];
  if (primary === null || !metric) return `${id} ${status}${reason === null ? "" : `: ${reason}`}`;
  const interval = colours.dim(formatInterval(metric.ci95, metric.unit));
  return joined([
    id,
    `${humanizeName(primary)} ${formatValue(metric.value, metric.unit)} ${interval}`,
    status === "complete" ? null : status,
    verdictText(paired.baseline?.[primary]?.verdict ?? null, colours),
  ]);
}

const verdictColours = { better: "green", worse: "red", changed: "yellow", "no evidence": "dim" } as const;

export function verdictText(verdict: Paired["verdict"], colours: Colours): string | null {
  return verdict && colours[verdictColours[verdict]](verdict);
}

const joined = (parts: readonly (string | null)[]): string =>
  parts.filter((part) => part !== null).join("  ");
