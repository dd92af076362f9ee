import type { AnswerFields, MetricKit, MetricOptions, Json } from "@periodic-eval/contracts";
import type { AnswerFault } from "../prompting/answer-warnings.ts";
import { completionFields, truncatedFlag, type CompletionRow } from "../prompting/completions.ts";
import type { Trait } from "./traits.ts";

/** The fields of a `GradedLeakageRow`. */
export const leakageFields = {
  ...completionFields,
  reply: "reason",
  flags: [
    { name: "has the trait", any: [{ hit: { is: [true] } }] },
    { name: "ungraded", any: [{ hit: { is: [null] } }] },
    truncatedFlag,
  ],
} satisfies AnswerFields;

/** The metrics that `leakageEvaluation` describes. */
export function leakageMetrics(
  { rate, mean, contrast }: MetricKit<GradedLeakageRow>,
  source: string | null,
  hasMarkerLogProb: boolean,
) {
  const isSource = ({ persona }: GradedLeakageRow) => persona === source;
  // All personas share a question's effect.
  const cluster = ({ question }: GradedLeakageRow) => question;
  const item = (row: GradedLeakageRow) => row.item;
  const by = (row: GradedLeakageRow) => (isSource(row) ? null : row.persona);
  const sampled = { sampled: true, item, cluster };
  const nats: MetricOptions<GradedLeakageRow> = { unit: "nats", range: [-Infinity, 0], cluster };
  const hasSource = source !== null;
  const isUnknown = (row: GradedLeakageRow) => leakageFault(row) !== null;
  const sourced = hasSource ? { source: "source_rate" } : {};
  return {
    leakage_rate: rate((row) => (isSource(row) ? null : row.hit), {
      ...sampled,
      unknown: (row) => !isSource(row) && isUnknown(row),
      primary: true,
      higherIsBetter: false,
      by,
      ...sourced,
    }),
    ...(hasSource && {
      source_rate: rate((row) => (isSource(row) ? row.hit : null), {
        ...sampled,
        unknown: (row) => isSource(row) && isUnknown(row),
      }),
      source_contrast: contrast(
        rate((row) => row.hit, { sampled: true, item }),
        isSource,
      ),
    }),
    ...(hasMarkerLogProb && {
      marker_log_prob: mean((row) => (isSource(row) ? null : row.markerNats), {
        ...nats,
        higherIsBetter: false,
        by,
        ...sourced,
      }),
      ...(hasSource && {
        source_marker_log_prob: mean((row) => (isSource(row) ? row.markerNats : null), nats),
      }),
    }),
  };
}

/** Returns why a completion does not show whether the model has the trait; null if it does. */
export function leakageFault({ answer, hit, finish, fault }: GradedLeakageRow): AnswerFault | null {
  if (answer === null) return "cut";
  if (fault !== undefined || hit !== null) return fault ?? null;
  return finish === "length" ? "cut" : "ungraded";
}

/** The metrics that the completions decide. */
export const leakageJudged = ["leakage_rate", "source_rate", "source_contrast"];

export interface LeakagePlainKeysOptions {
  readonly trait: Trait;
  readonly source: string | null;
  readonly completions: number;
  /** Ids of the personas, in their order; empty if they were not read from their file. */
  readonly personas: readonly string[];
}

export function leakagePlainKeys(
  rows: readonly GradedLeakageRow[],
  { trait, source, completions, personas }: LeakagePlainKeysOptions,
): Readonly<Record<string, Json>> {
  const ids = [...new Set([...personas, ...rows.map(({ persona }) => persona!)])];
  return {
    marker_token: trait.marker,
    trait: trait.name,
    source,
    leakage_rates: Object.fromEntries(ids.map((id) => [id, hitShare(rows, id)])),
    num_completions: completions,
    num_questions: new Set(rows.map(({ question }) => question)).size,
    truncated: rows.filter(({ finish }) => finish === "length").length,
  };
}

function hitShare(rows: readonly GradedLeakageRow[], persona: string): number | null {
  const graded = rows.filter((row) => row.persona === persona && row.hit !== null);
  return graded.length === 0 ? null : graded.filter(({ hit }) => hit === true).length / graded.length;
}

/** One completion. */
export interface LeakageRow extends CompletionRow {
  /**
   * Σ log p of the marker after the question's fixed answer, in nats. It belongs to the item and is kept in the row of sample
   * 0; null in the other rows, and if it was not measured.
   */
  readonly markerNats: number | null;
}

export interface GradedLeakageRow extends LeakageRow {
  /** Whether the completion has the trait; null if a custom trait failed or the thinking did not end. */
  readonly hit: boolean | null;
  readonly reason?: string;
}
