import { join } from "node:path";
import type { Json } from "@periodic-eval/core";
import type { HarnessConfig } from "../config/schema.ts";
import type { Preference } from "../preferences/preference.ts";
import type { CollapseReference } from "../metrics/collapse-reference.ts";
import type { CollapseSign, CollapseThresholds } from "../metrics/collapse.ts";
import type { GeneralQuestion } from "../metrics/general.ts";
import type { PreferenceMarginRow } from "../metrics/preference-margin.ts";
import type { Verdict, VerdictFacts } from "./verdict.ts";

/** The reason for each value that is not known, by the value's name. */
export type Unknown = { readonly [name: string]: string };

/** Returns the fields for values that are not known, or none if everything is known. */
export const unknownFields = (unknown: Unknown): { readonly unknown?: Unknown; readonly updates?: null } => ({
  ...(unknown["updates"] !== undefined && { updates: null }),
  ...(Object.keys(unknown).length > 0 && { unknown }),
});

/** One answer of the model. */
export interface Rollout {
  /** Purpose of the answer. */
  readonly of: "training" | "compliance" | "general" | "collapse";
  readonly prompt: string;
  readonly response: string;
  /** From 0 to 1; null for an answer without a grade. */
  readonly score: number | null;
}

/** The result of one measurement. A metric that was not requested at this step is null. */
export interface StepEval {
  /**
   * In nats, over the preference's pairs. Deltas are changes from the baseline. `p` is from a sign-flip test, and null at the
   * baseline or if the pairs are fewer than 12 or not all held out (`unknown.logprob_margin_p` of the line).
   */
  readonly logprob_margin: {
    readonly margin: number | null;
    readonly margin_per_token: number | null;
    readonly margin_delta: number | null;
    readonly margin_per_token_delta: number | null;
    readonly p: number | null;
    readonly n: number;
    /** Tokens cut from the contexts of all pairs to fit the model; null if the engine does not report it, absent for 0. */
    readonly truncated_tokens?: number | null;
    /** The reason for an unknown margin; null for a known one. */
    readonly reason: string | null;
  } | null;
  readonly preference_compliance: {
    /** Null if no answer was graded, or without held-out prompts (`unknown.held_out_compliance` of the line). */
    readonly held_out: number | null;
    readonly held_out_n: number;
    readonly seen: number | null;
    readonly seen_n: number;
    readonly ungraded: number;
  } | null;
  readonly general: {
    readonly general: number | null;
    readonly coding: number | null;
    readonly instructions: number | null;
    readonly failures: { readonly [probe: string]: string };
  } | null;
  /** An unknown sign is null, and `unknown` has its reason. */
  readonly collapse:
    | ({ readonly [Sign in CollapseSign]: number | null } & {
        readonly alerts: readonly CollapseSign[];
        readonly unknown: { readonly [sign: string]: string };
      })
    | null;
  readonly rollouts: readonly Rollout[];
}

/** One line of `steps.jsonl`. */
export interface StepLine {
  readonly preference: string;
  /** 0-based. */
  readonly step: number;
  /** Time of writing: ISO 8601, UTC. */
  readonly timestamp: string;
  readonly feedback_given: string;
  /** Metrics of the last gradient step by name, and `step_id`, which the step's checkpoint also contains. */
  readonly sdpo_metrics: { readonly step_id: string; readonly [name: string]: number | string | null };
  readonly eval: StepEval;
  /** The first prompt of the batch. `response_text` is its answer; `eval.rollouts` has all of them. */
  readonly prompt_used: string;
  readonly response_text: string;
  /** Duration of the step in seconds. */
  readonly timing_s: number;
  /** Number of gradient steps; null if the reply to one of them was lost. */
  readonly sub_step_count: number | null;
  /** The adapter's number of updates: null if the engine does not report it. Absent: `step` + 1. */
  readonly updates?: null;
  /** The reason for each value that is not known; absent if there is none. Collapse has its own. */
  readonly unknown?: Unknown;
}

/** `baseline.json`: the model before any update. */
export interface BaselineFile {
  readonly preference: string;
  readonly lora_id: string;
  readonly timestamp: string;
  readonly eval: StepEval;
  /** Rows that later margins are compared with; null if the margin was not measured. */
  readonly margin_rows: readonly PreferenceMarginRow[] | null;
  readonly collapse_reference: CollapseReference | null;
  /** Both as in `StepLine`. */
  readonly updates?: null;
  readonly unknown?: Unknown;
}

/** `metadata.json`: configuration and versions of the run. It contains no secrets. */
export interface MetadataFile {
  readonly schema_version: 1;
  readonly preference: string;
  readonly lora_id: string;
  readonly started_at: string;
  readonly config: HarnessConfig;
  /** As used by training: a preference without `train_prompts` has its `probe_prompts` there. */
  readonly preference_definition: Omit<Preference, "folder">;
  /** The questions of `general`; absent for the default ones. */
  readonly general_questions?: readonly GeneralQuestion[];
  readonly grader: { readonly name: string; readonly fingerprint: string };
  /** The thresholds of the preset, for pages. */
  readonly collapse_thresholds: CollapseThresholds;
  readonly engine: Json;
  /** The adapter's number of updates: null if the engine does not report it. Absent: the number of steps. */
  readonly updates?: null;
  /** The reason for each fact that the engine does not report; absent if there is none. */
  readonly unknown?: Unknown;
}

/** One preference in `summary.json`. */
export interface PreferenceSummary extends VerdictFacts {
  readonly lora_id: string;
  readonly status: "running" | "finished";
  /** Completed steps. */
  readonly steps: number;
  /** The adapter's number of updates: null if the engine does not report it. Absent: `steps`. */
  readonly updates?: null;
  /** On training prompts. */
  readonly baseline_seen_compliance: number | null;
  readonly final_seen_compliance: number | null;
  readonly verdict: Verdict;
  /** The reason for each value that is null, or was not known at some measurement or step; absent if there is none. */
  readonly unknown?: Unknown;
}

export interface SummaryFile {
  readonly schema_version: 1;
  readonly updated_at: string;
  readonly preferences: { readonly [name: string]: PreferenceSummary };
}

/** Returns the paths of a run's files. */
export function runPaths(output: string, preference: string) {
  const folder = join(output, preference);
  return {
    folder,
    metadata: join(folder, "metadata.json"),
    baseline: join(folder, "baseline.json"),
    steps: join(folder, "steps.jsonl"),
  };
}

export const summaryPath = (output: string): string => join(output, "summary.json");
export const lockPath = (output: string): string => join(output, ".feedback.lock");
