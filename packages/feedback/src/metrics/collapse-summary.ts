import { configError, isRecord, parseOptions } from "@periodic-eval/contracts/options";
import * as z from "zod";

/** Thresholds beyond which a sign is an alert. */
export interface CollapseThresholds {
  /** Minimum ratio of the entropy to the baseline's. */
  readonly entropyRatio: number;
  /** Maximum similarity of answers to one prompt, ROUGE-L F1. */
  readonly selfRougeL: number;
  /** Maximum absolute change of the mean log p per token, in nats. */
  readonly driftNats: number;
}

/** `claas`: the thresholds of kfallah/CLaaS. */
export const collapsePresets = {
  claas: { entropyRatio: 0.6, selfRougeL: 0.85, driftNats: 2 },
} as const satisfies Readonly<Record<string, CollapseThresholds>>;

/** The thresholds under the keys that files use. */
export interface WrittenThresholds {
  readonly entropy_ratio: number;
  readonly self_rouge_l: number;
  readonly drift_nats: number;
}

export const writtenThresholds = (thresholds: CollapseThresholds): WrittenThresholds => ({
  entropy_ratio: thresholds.entropyRatio,
  self_rouge_l: thresholds.selfRougeL,
  drift_nats: thresholds.driftNats,
});

export const readThresholds = (written: WrittenThresholds): CollapseThresholds => ({
  entropyRatio: written.entropy_ratio,
  selfRougeL: written.self_rouge_l,
  driftNats: written.drift_nats,
});

export type CollapsePreset = keyof typeof collapsePresets;

/** Measured signs of collapse. An unknown sign is null; `reasons` of the row says why. */
export interface CollapseSigns {
  readonly entropy_nats: number | null;
  readonly entropy_ratio: number | null;
  readonly self_rouge_l: number | null;
  readonly own_drift: number | null;
  readonly baseline_drift: number | null;
}

export type CollapseSign = keyof CollapseSigns;

/** The signs that have a threshold. */
export const alertSigns = ["entropy_ratio", "self_rouge_l", "own_drift", "baseline_drift"] as const;

/** Returns the signs beyond their thresholds. An unknown sign (null) is never an alert, although it may not be healthy. */
export function collapseAlerts(
  signs: CollapseSigns,
  thresholds: CollapseThresholds,
): readonly CollapseSign[] {
  const { entropy_ratio: ratio, self_rouge_l: rouge, own_drift: own, baseline_drift: baseline } = signs;
  const beyond: readonly (readonly [CollapseSign, boolean])[] = [
    ["entropy_ratio", ratio !== null && ratio < thresholds.entropyRatio],
    ["self_rouge_l", rouge !== null && rouge > thresholds.selfRougeL],
    ["own_drift", own !== null && Math.abs(own) > thresholds.driftNats],
    ["baseline_drift", baseline !== null && Math.abs(baseline) > thresholds.driftNats],
  ];
  return beyond.flatMap(([sign, isBeyond]) => (isBeyond ? [sign] : []));
}

const threshold = z.number("a finite number");
const thresholdsSchema = z.strictObject({
  entropyRatio: threshold,
  selfRougeL: threshold,
  driftNats: threshold,
} satisfies Record<keyof CollapseThresholds, z.ZodType>);

/**
 * Returns the thresholds of a preset, or checks the given ones.
 *
 * @throws PeriodicEvalError `config` for an unknown preset, or a threshold that is not a number.
 */
export function thresholdsOf(preset: CollapsePreset | CollapseThresholds): CollapseThresholds {
  if (typeof preset === "string" && Object.hasOwn(collapsePresets, preset)) return collapsePresets[preset];
  if (isRecord(preset)) return parseOptions("collapse options.preset", thresholdsSchema, preset);
  throw configError({
    where: "collapse options",
    path: ["preset"],
    value: preset,
    expected: `"claas", or numbers for ${Object.keys(collapsePresets.claas).join(", ")}`,
    fix: 'Write "claas", or all three thresholds.',
  });
}
