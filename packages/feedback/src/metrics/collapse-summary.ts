import { PeriodicEvalError } from "@periodic-eval/core";
import { checkKeys, quoteValue } from "@periodic-eval/core/internal";

/** Beyond these a model counts as collapsing. */
export interface CollapseThresholds {
  /** Least ratio of the entropy to the baseline's. */
  readonly entropyRatio: number;
  /** Most that samples of one prompt may be alike, ROUGE-L F1. */
  readonly selfRougeL: number;
  /** Most that log p of a token may have moved, either way, in nats. */
  readonly driftNats: number;
}

/** `claas`: those of kfallah/CLaaS. */
export const collapsePresets = {
  claas: { entropyRatio: 0.6, selfRougeL: 0.85, driftNats: 2 },
} as const satisfies Readonly<Record<string, CollapseThresholds>>;

/** The thresholds as files have them. */
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

/** What was seen of a model. Null: unknown, `reasons` says why. */
export interface CollapseSigns {
  readonly entropy_nats: number | null;
  readonly entropy_ratio: number | null;
  readonly self_rouge_l: number | null;
  readonly own_drift: number | null;
  readonly baseline_drift: number | null;
}

export type CollapseSign = keyof CollapseSigns;

/**
 * The signs that are beyond their thresholds. An unknown sign raises no alarm and gives no
 * all-clear either: look at what is null.
 */
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

/** @throws PeriodicEvalError `config` for a name that is none, or thresholds that are no numbers. */
export function thresholdsOf(preset: CollapsePreset | CollapseThresholds): CollapseThresholds {
  if (typeof preset === "string" && Object.hasOwn(collapsePresets, preset)) return collapsePresets[preset];
  const names = Object.keys(collapsePresets.claas);
  if (typeof preset === "object") {
    checkKeys("collapse.preset", preset, names);
    if (names.every((name) => Number.isFinite(preset[name as keyof CollapseThresholds]))) return preset;
  }
  throw new PeriodicEvalError({
    code: "config",
    where: "collapse.preset",
    got: quoteValue(preset),
    expected: `"claas", or numbers for ${names.join(", ")}`,
    fix: 'Write "claas", or all three thresholds.',
  });
}
