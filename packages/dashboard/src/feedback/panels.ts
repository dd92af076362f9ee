import { humanizeName } from "../html/format.ts";
import type {
  CollapseThresholds,
  FeedbackMeasurement,
  FeedbackStep,
  FeedbackPreference,
  FeedbackRun,
} from "./read-feedback.ts";

/** A value, or the reason why it is missing. */
export type Reading =
  | { readonly value: number; readonly n?: number }
  | { readonly value: null; readonly reason: string };

/** A reading after a number of updates. The baseline has 0 updates. */
export type Point = Reading & { readonly updates: number };

export interface Series {
  readonly name: string;
  /** Colour index. A preference has the same colour in all panels. */
  readonly colour: number;
  readonly isDashed: boolean;
  readonly points: readonly Point[];
}

/** The data of one chart. */
export interface Panel {
  /** Unique within a run. Also the name of the chart's file. */
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  /** Possible values: minimum and maximum. */
  readonly bounds: readonly [number, number];
  readonly limits: readonly number[];
  readonly series: readonly Series[];
}

/** Charts that answer one question. */
export interface PanelGroup {
  readonly title: string;
  readonly about: string;
  readonly panels: readonly Panel[];
}

const unbounded = [-Infinity, Infinity] as const;
const positive = [0, Infinity] as const;

/** Returns all charts of a run, from its files only. */
export function panelGroups({ preferences }: FeedbackRun): readonly PanelGroup[] {
  return [
    margins(preferences),
    learningCurves(preferences),
    collapse(preferences),
    forgetting(preferences),
    diagnostics(preferences),
  ];
}

const margins = (preferences: readonly FeedbackPreference[]): PanelGroup => ({
  title: "Margins",
  about:
    "Log-probability of the chosen answer minus that of the rejected answer, averaged over the preference's pairs. Higher values agree more with the preference.",
  panels: [
    marginPanel(preferences, "margin_delta", "margin, change from the baseline", "nats"),
    marginPanel(preferences, "margin", "margin", "nats"),
    marginPanel(preferences, "margin_per_token", "margin per token", "nats per token"),
  ],
});

const marginPanel = (
  preferences: readonly FeedbackPreference[],
  key: "margin" | "margin_delta" | "margin_per_token",
  title: string,
  unit: string,
): Panel => ({
  id: key,
  title,
  unit,
  bounds: unbounded,
  limits: [],
  series: perPreference(preferences, "logprob", (measurement, { baseline, summary }) => {
    const seen = measurement.logprob_margin;
    // The baseline is not compared with itself.
    if (seen === null || (key === "margin_delta" && measurement === baseline)) return null;
    const why = seen.reason ?? summary.unknown?.["logprob_margin_delta"] ?? "no reason was given";
    return { ...readingOf(seen[key], why), n: seen.n };
  }),
});

const learningCurves = (preferences: readonly FeedbackPreference[]): PanelGroup => ({
  title: "Learning curves",
  about:
    "Compliance is the verifier's mean reward, on held-out prompts (solid) and on training prompts (dashed).",
  panels: preferences.map((one, colour) => ({
    id: `compliance-${one.name}`,
    title: `compliance: ${one.name}`,
    unit: "share",
    bounds: [0, 1],
    limits: [],
    series: (["held_out", "seen"] as const).map((key) => ({
      name: humanizeName(key),
      colour,
      isDashed: key === "seen",
      points: pointsOf(
        one,
        "compliance",
        ({ preference_compliance: seen }) =>
          seen && {
            ...readingOf(
              seen[key],
              (key === "held_out" ? one.summary.unknown?.["held_out_compliance"] : undefined) ??
                `no answer was graded (grading failed for ${seen.ungraded})`,
            ),
            n: seen[`${key}_n`],
          },
      ),
    })),
  })),
});

function collapse(preferences: readonly FeedbackPreference[]): PanelGroup {
  const thresholds = thresholdsOf(preferences);
  // Thresholds come from the run's files, not from current defaults. Preferences of one run can have different thresholds.
  const linesAt = (limitsOf: (one: CollapseThresholds) => readonly number[]): readonly number[] => [
    ...new Set(thresholds.flatMap(limitsOf)),
  ];
  const drifts = linesAt(({ drift_nats: nats }) => [-nats, nats]);
  const metrics = [
    ["entropy_ratio", "entropy ratio", "", positive, linesAt((one) => [one.entropy_ratio])],
    ["self_rouge_l", "self-ROUGE-L", "F1", [0, 1], linesAt((one) => [one.self_rouge_l])],
    ["own_drift", "drift on its own text", "nats per token", unbounded, drifts],
    ["baseline_drift", "drift on the baseline's text", "nats per token", unbounded, drifts],
  ] as const;
  const rules = thresholds.map(
    (one) =>
      `an entropy ratio below ${one.entropy_ratio}, self-ROUGE-L (similarity of answers to one prompt) above ${one.self_rouge_l}, or a drift beyond ±${one.drift_nats} nats per token`,
  );
  return {
    title: "Collapse",
    about: `Values beyond a red line raise an alert${rules.length === 0 ? "" : `: ${rules.join("; or ")}`}.`,
    panels: metrics.map(([metric, title, unit, bounds, lines]) => ({
      id: metric,
      title,
      unit,
      bounds,
      limits: lines,
      series: perPreference(
        preferences,
        "collapse",
        ({ collapse: seen }) =>
          seen && readingOf(seen[metric], seen.unknown[metric] ?? "no reason was given"),
      ),
    })),
  };
}

/** Returns the distinct thresholds of all preferences. */
function thresholdsOf(preferences: readonly FeedbackPreference[]): readonly CollapseThresholds[] {
  const all = preferences.map(({ metadata }) => metadata.collapse_thresholds);
  const keyOf = (one: CollapseThresholds) => [one.entropy_ratio, one.self_rouge_l, one.drift_nats].join();
  return [...new Map(all.map((one) => [keyOf(one), one])).values()];
}

const forgetting = (preferences: readonly FeedbackPreference[]): PanelGroup => ({
  title: "Forgetting",
  about: `General ability: ${generalRule(preferences)}. The ratio is relative to the baseline.`,
  panels: [
    {
      id: "general",
      title: "general",
      unit: "share",
      bounds: [0, 1],
      limits: [],
      series: perPreference(
        preferences,
        "general",
        ({ general: seen }) => seen && readingOf(seen.general, failuresOf(seen.failures)),
      ),
    },
    {
      id: "capability_ratio",
      title: "capability ratio",
      unit: "",
      bounds: positive,
      limits: [],
      series: perPreference(preferences, "general", (measurement, { baseline }) =>
        capabilityOf(measurement, baseline),
      ),
    },
  ],
});

/** Describes how `general` is scored. All preferences of a run have the same questions. */
function generalRule([first]: readonly FeedbackPreference[]): string {
  const questions = first?.metadata.general_questions;
  return questions === undefined
    ? "a coding task counts half, three instructions count half"
    : `the share of right answers to ${questions.length} questions of the configuration`;
}

function capabilityOf(
  { general: now }: FeedbackMeasurement,
  { general: before }: FeedbackMeasurement,
): Reading | null {
  if (now === null) return null;
  const missing = (reason: string): Reading => ({ value: null, reason });
  if (now.general === null) return missing(failuresOf(now.failures));
  if (before === null || before.general === null) return missing("the baseline is unknown");
  if (before.general === 0) return missing("the baseline is 0");
  return { value: now.general / before.general };
}

const failuresOf = (failures: Readonly<Record<string, string>>): string =>
  Object.entries(failures)
    .map(([probe, failure]) => `${probe}: ${failure}`)
    .join("; ") || "no reason was given";

const sdpo = [
  ["loss", "loss", "", unbounded],
  ["distill_loss", "distillation loss", "", unbounded],
  ["kl_reg", "KL to the base", "nats", unbounded],
  ["mean_is_ratio", "mean importance ratio", "", positive],
  ["clip_fraction", "clipped tokens", "share", [0, 1]],
  ["grad_norm", "gradient norm", "", positive],
] as const;

const diagnostics = (preferences: readonly FeedbackPreference[]): PanelGroup => ({
  title: "SDPO diagnostics",
  about: "Values of the last gradient step on each batch, before its update.",
  panels: sdpo.map(([name, title, unit, bounds]) => ({
    id: name,
    title,
    unit,
    bounds,
    limits: [],
    series: preferences.map(({ name: preference, steps }, colour) => ({
      name: preference,
      colour,
      isDashed: false,
      points: steps.map((line) => ({ updates: line.step + 1, ...trainedReading(line, name) })),
    })),
  })),
});

function trainedReading({ sdpo_metrics: metrics, unknown = {} }: FeedbackStep, name: string): Reading {
  const value = Object.hasOwn(metrics, name) ? metrics[name] : null;
  return readingOf(
    typeof value === "number" ? value : null,
    unknown[name] ?? "the engine does not report it",
  );
}

const readingOf = (value: number | null, reason: string): Reading =>
  value === null ? { value, reason } : { value };

type Read = (measurement: FeedbackMeasurement, of: FeedbackPreference) => Reading | null;

const perPreference = (
  preferences: readonly FeedbackPreference[],
  metric: string,
  read: Read,
): readonly Series[] =>
  preferences.map((one, colour) => ({
    name: one.name,
    colour,
    isDashed: false,
    points: pointsOf(one, metric, read),
  }));

/**
 * Returns the points of a metric, the baseline first. Omits measurements that did not request the metric. A metric that was
 * never measured has a single point with the reason.
 */
function pointsOf(one: FeedbackPreference, metric: string, read: Read): readonly Point[] {
  const measurements = [one.baseline, ...one.steps.map(({ eval: seen }) => seen)];
  const points = measurements.flatMap((measurement, updates): Point[] => {
    const reading = read(measurement, one);
    return reading === null ? [] : [{ updates, ...reading }];
  });
  if (points.length > 0) return points;
  const reason = one.metadata.config.metrics.includes(metric)
    ? "no measurement includes it"
    : `${metric} is not among the metrics of the configuration`;
  return [{ updates: 0, value: null, reason }];
}
