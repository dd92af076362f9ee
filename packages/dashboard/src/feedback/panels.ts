import { humanizeName, ownValue } from "../html/format.ts";
import type {
  CollapseThresholds,
  FeedbackMeasurement,
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

const [unbounded, positive, share] = [
  [-Infinity, Infinity],
  [0, Infinity],
  [0, 1],
] as const;

const panel = (
  id: string,
  title: string,
  unit: string,
  series: readonly Series[],
  bounds: Panel["bounds"] = unbounded,
  limits: readonly number[] = [],
): Panel => ({ id, title, unit, bounds, limits, series });

/** Returns all charts of a run, from its files only. */
export const panelGroups = ({ preferences }: FeedbackRun): readonly PanelGroup[] =>
  [margins, learningCurves, collapse, forgetting, diagnostics].map((group) => group(preferences));

const margins = (preferences: readonly FeedbackPreference[]): PanelGroup => ({
  title: "Margins",
  about:
    "Log-probability of the chosen answer minus that of the rejected answer, averaged over the preference's pairs. Higher values agree more with the preference.",
  panels: (
    [
      ["margin_delta", "margin, change from the baseline", "nats"],
      ["margin", "margin", "nats"],
      ["margin_per_token", "margin per token", "nats per token"],
    ] as const
  ).map(([key, title, unit]) => {
    const read: Read = (measurement, { baseline, summary }) => {
      const seen = measurement.logprob_margin;
      // The baseline is not compared with itself.
      if (seen === null || (key === "margin_delta" && measurement === baseline)) return null;
      const why = seen.reason ?? summary.unknown?.["logprob_margin_delta"];
      return { ...readingOf(seen[key], why), n: seen.n };
    };
    return panel(key, title, unit, perPreference(preferences, "logprob", read));
  }),
});

const learningCurves = (preferences: readonly FeedbackPreference[]): PanelGroup => ({
  title: "Learning curves",
  about:
    "Compliance is the verifier's mean reward, on held-out prompts (solid) and on training prompts (dashed).",
  panels: preferences.map((preference, colour) => {
    const series = (["held_out", "seen"] as const).map((key): Series => {
      const isDashed = key === "seen";
      const points = pointsOf(preference, "compliance", ({ preference_compliance: seen }) => {
        const why = isDashed ? undefined : preference.summary.unknown?.["held_out_compliance"];
        const ungraded = `no answer was graded (grading failed for ${seen?.ungraded})`;
        return seen && { ...readingOf(seen[key], why ?? ungraded), n: seen[`${key}_n`] };
      });
      return { name: humanizeName(key), colour, isDashed, points };
    });
    return panel(`compliance-${preference.name}`, `compliance: ${preference.name}`, "share", series, share);
  }),
});

function collapse(preferences: readonly FeedbackPreference[]): PanelGroup {
  // Thresholds come from the run's files, not from current defaults. Preferences of one run can have different thresholds.
  const all = preferences.map(({ metadata }) => metadata.collapse_thresholds);
  const linesAt = (limitsOf: (limits: CollapseThresholds) => readonly number[]): readonly number[] => [
    ...new Set(all.flatMap(limitsOf)),
  ];
  const drifts = linesAt(({ drift_nats: nats }) => [-nats, nats]);
  const metrics = [
    ["entropy_ratio", "entropy ratio", "", positive, linesAt((limits) => [limits.entropy_ratio])],
    ["self_rouge_l", "self-ROUGE-L", "F1", share, linesAt((limits) => [limits.self_rouge_l])],
    ["own_drift", "drift on its own text", "nats per token", unbounded, drifts],
    ["baseline_drift", "drift on the baseline's text", "nats per token", unbounded, drifts],
  ] as const;
  const rules = all.map(
    (limits) =>
      `an entropy ratio below ${limits.entropy_ratio}, self-ROUGE-L (similarity of answers to one prompt) above ${limits.self_rouge_l}, or a drift beyond ±${limits.drift_nats} nats per token`,
  );
  return {
    title: "Collapse",
    about: `Values beyond a red line raise an alert${rules.length === 0 ? "" : `: ${[...new Set(rules)].join("; or ")}`}.`,
    panels: metrics.map(([metric, title, unit, bounds, lines]) => {
      const read: Read = ({ collapse: seen }) => seen && readingOf(seen[metric], seen.unknown[metric]);
      return panel(metric, title, unit, perPreference(preferences, "collapse", read), bounds, lines);
    }),
  };
}

function forgetting(preferences: readonly FeedbackPreference[]): PanelGroup {
  // All preferences of a run have the same questions.
  const questions = preferences[0]?.metadata.general_questions;
  const rule =
    questions === undefined
      ? "a coding task counts half, three instructions count half"
      : `the share of right answers to ${questions.length} questions of the configuration`;
  const general: Read = ({ general: seen }) => seen && readingOf(seen.general, failuresOf(seen.failures));
  const ratio: Read = ({ general: now }, { baseline: { general: before } }) => {
    if (now === null) return null;
    if (now.general === null) return readingOf(null, failuresOf(now.failures));
    if (before?.general == null) return readingOf(null, "the baseline is unknown");
    return before.general === 0
      ? readingOf(null, "the baseline is 0")
      : readingOf(now.general / before.general);
  };
  return {
    title: "Forgetting",
    about: `General ability: ${rule}. The ratio is relative to the baseline.`,
    panels: [
      panel("general", "general", "share", perPreference(preferences, "general", general), share),
      panel(
        "capability_ratio",
        "capability ratio",
        "",
        perPreference(preferences, "general", ratio),
        positive,
      ),
    ],
  };
}

export const failuresOf = (failures: Readonly<Record<string, string>>): string | undefined =>
  Object.entries(failures)
    .map(([probe, failure]) => `${probe}: ${failure}`)
    .join("; ") || undefined;

const sdpo = [
  ["loss", "loss", "", unbounded],
  ["distill_loss", "distillation loss", "", unbounded],
  ["kl_reg", "KL to the base", "nats", unbounded],
  ["mean_is_ratio", "mean importance ratio", "", positive],
  ["clip_fraction", "clipped tokens", "share", share],
  ["grad_norm", "gradient norm", "", positive],
] as const;

const diagnostics = (preferences: readonly FeedbackPreference[]): PanelGroup => ({
  title: "SDPO diagnostics",
  about: "Values of the last gradient step on each batch, before its update.",
  panels: sdpo.map(([metric, title, unit, bounds]) => {
    const series = preferences.map(({ name, steps }, colour) => {
      const points = steps.map(({ step, sdpo_metrics: metrics, unknown }) => {
        const value = ownValue(metrics, metric);
        const why = unknown?.[metric] ?? "the engine does not report it";
        return { updates: step + 1, ...readingOf(typeof value === "number" ? value : null, why) };
      });
      return { name, colour, isDashed: false, points };
    });
    return panel(metric, title, unit, series, bounds);
  }),
});

const readingOf = (value: number | null, reason = "no reason was given"): Reading =>
  value === null ? { value, reason } : { value };

type Read = (measurement: FeedbackMeasurement, of: FeedbackPreference) => Reading | null;

const perPreference = (
  preferences: readonly FeedbackPreference[],
  metric: string,
  read: Read,
): readonly Series[] =>
  preferences.map((preference, colour) => ({
    name: preference.name,
    colour,
    isDashed: false,
    points: pointsOf(preference, metric, read),
  }));

/**
 * Returns the points of a metric, the baseline first. Omits measurements that did not request the metric. A metric that was
 * never measured has a single point with the reason.
 */
function pointsOf(preference: FeedbackPreference, metric: string, read: Read): readonly Point[] {
  const measurements = [preference.baseline, ...preference.steps.map(({ eval: seen }) => seen)];
  const points = measurements.flatMap((measurement, updates): Point[] => {
    const reading = read(measurement, preference);
    return reading === null ? [] : [{ updates, ...reading }];
  });
  if (points.length > 0) return points;
  const reason = preference.metadata.config.metrics.includes(metric)
    ? "no measurement includes it"
    : `${metric} is not among the metrics of the configuration`;
  return [{ updates: 0, value: null, reason }];
}
