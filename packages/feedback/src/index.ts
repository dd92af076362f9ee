export {
  loadHarnessConfig,
  parseHarnessConfig,
  shippedConfigs,
  type LoadConfigOptions,
} from "./config/load-config.ts";
export {
  metricNames,
  metricPresets,
  type HarnessConfig,
  type HarnessConfigInput,
  type MetricName,
} from "./config/schema.ts";
export {
  readPreference,
  shippedPreferences,
  type LogprobPair,
  type Preference,
  type PreferenceVerifier,
} from "./preferences/preference.ts";
export { findEmoji } from "./graders/shipped.ts";
export { countSentences, countWords } from "./graders/shipped.ts";
export { openVerifier } from "./graders/open-verifier.ts";
export {
  preferenceMarginEvaluation,
  marginDelta,
  type MarginDelta,
  type PreferenceMarginOptions,
  type PreferenceMarginRow,
} from "./metrics/preference-margin.ts";
export {
  complianceEvaluation,
  type ComplianceOptions,
  type GradedComplianceRow,
} from "./metrics/compliance.ts";
export {
  capabilityRatio,
  generalEvaluation,
  type GeneralOptions,
  type GradedGeneralRow,
} from "./metrics/general.ts";
export { readGeneralQuestions, type GeneralQuestion } from "./metrics/general.ts";
export { collapseEvaluation, collapseReference, type CollapseOptions } from "./metrics/collapse.ts";
export type { CollapseRow } from "./metrics/collapse-rows.ts";
export { collapseProbes, readCollapseProbes, type CollapseProbes } from "./metrics/collapse.ts";
export type { CollapseReference, ReferenceAnswer } from "./metrics/collapse-reference.ts";
export {
  collapseAlerts,
  collapsePresets,
  type CollapsePreset,
  type CollapseSign,
  type CollapseSigns,
  type CollapseThresholds,
} from "./metrics/collapse.ts";
export { feedbackEvaluations } from "./metrics/configured.ts";
export { rougeL, selfRougeL } from "./metrics/collapse-rows.ts";
export { runInSandbox, type SandboxResult } from "./sandbox/run-in-sandbox.ts";
export type { SandboxLimits, SandboxValue } from "./sandbox/evaluate.ts";
export type * from "./engine/types.ts";
export { httpEngine, type HttpEngineOptions } from "./engine/http-engine.ts";
export { localEngine, type AdaptedModel, type LocalEngineOptions } from "./engine/local-engine.ts";
export { runHarness, type HarnessPorts } from "./harness/run-harness.ts";
export type {
  BaselineFile,
  MetadataFile,
  PreferenceSummary,
  Rollout,
  StepEval,
  StepLine,
  SummaryFile,
} from "./harness/files.ts";
export { verdictOf, type Verdict } from "./harness/verdict.ts";
