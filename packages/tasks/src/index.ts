export { drawExamples, type FewShot } from "./documents/few-shot.ts";
export { readDocuments, type ReadDocuments } from "./documents/read-documents.ts";
export type { DataRow, PlacedRow } from "@periodic-eval/data";
export { findAccumulationSteps } from "./families/accumulation-steps.ts";
export * from "./families/encoding.ts";
export { evaluate } from "./families/evaluate.ts";
export type {
  CallSampling,
  Evaluable,
  EvaluateMethod,
  EvaluateOptions,
  Intermediate,
  Reduce,
} from "./families/evaluate-options.ts";
export type { Hooks, Scored } from "./families/hooks.ts";
export type {
  Documents,
  Family,
  FamilyItem,
  FamilyOptions,
  FamilyRow,
  PromptInput,
} from "./families/family.ts";
export type { ChoicesItem, ChoicesOptions, ChoicesRow, ChoiceVerdict } from "./families/choices.ts";
export * from "./families/multiple-choice.ts";
export * from "./families/perplexity-comparison.ts";
export * from "./families/perplexity.ts";
export type { TextsItem, TextsOptions, TextsRow } from "./families/texts.ts";
export type { OnSequence, TokenSequence } from "./families/family.ts";
export * from "./families/rollout.ts";
export { readDocument, type IFEvalDocument, type IFEvalInstruction } from "./ifeval/ifeval-document.ts";
export { ifevalMetrics } from "./ifeval/score.ts";
export { scoreResponse, type IFEvalScores } from "./ifeval/score.ts";
export { datasetOf, datasets, type DatasetFile, type TaskDataset } from "./tasks/datasets.ts";
export { downloadDataset, type DownloadedFile } from "./tasks/datasets.ts";
export { taskNamed, tasks, type TaskRegistry } from "./tasks/registry.ts";
export type { ChatOptions, Task, TaskOptions } from "./tasks/task.ts";
export type { BenchmarkChatTemplate } from "./benchmark/benchmark-options.ts";
export { benchmarkEvaluation } from "./benchmark/benchmark-evaluation.ts";
export * from "./benchmark/benchmark-evaluator.ts";
export { readBenchmark, type Benchmark } from "./benchmark/folder.ts";
export {
  benchmarkMetrics,
  type MetricDefinition,
  type MetricRegistry,
  type MetricSetup,
} from "./benchmark/benchmark-metrics.ts";
export type { BenchmarkOptions } from "./benchmark/benchmark-options.ts";
export type {
  BenchmarkEngine,
  EngineCompletion,
  EngineFunction,
  EngineObject,
  EnginePrompt,
  EngineSampling,
} from "./benchmark/engine.ts";
export { folderStore } from "./benchmark/stores/store.ts";
export { httpStore, type HttpStoreOptions } from "./benchmark/stores/http-store.ts";
export type { BenchmarkStore } from "./benchmark/stores/store.ts";
export type { StoreFailure } from "./benchmark/stores/store.ts";
export type {
  AnsweredTaskRow,
  BenchmarkCompletion,
  BenchmarkRow,
  BenchmarkTask,
  BenchmarkVerdict,
  Split,
} from "./benchmark/benchmark-task.ts";
export type { VerifierSpec } from "./benchmark/verifiers/verifier-spec.ts";
export type { VerifierResult, Verifier, VerifierArgs, VerifierTask } from "@periodic-eval/core/grading";
export { evaluationsOf } from "./evaluations-of.ts";
export {
  resolveEntryPaths,
  resolveJudgePath,
  resolveModelPath,
  type ResolveEntryPath,
} from "./comparisons/entry-paths.ts";
export type { ComparisonOptions, OpenPairJudge } from "./comparisons/comparison-entries.ts";
export { type ReferenceEngine, type ReferenceSource } from "./comparisons/reference-model.ts";
export { Evaluator, type SuiteRun } from "./evaluator/evaluator.ts";
export type {
  CheckpointOptions,
  EvaluableTrainer,
  EvaluatorOptions,
  TaskProgress,
} from "./evaluator/evaluator-options.ts";
export * from "./results/read-samples.ts";
export {
  appendRun,
  checkSuite,
  readMetrics,
  type GivenRun,
  type MetricsFile,
  type MetricsRun,
} from "./results/metrics-file.ts";
export { checkDocuments } from "./results/metrics-file.ts";
export {
  defaultSuitePath,
  readSuite,
  type Suite,
  type SuiteDefinition,
  type SuiteTask,
} from "./suite/suite-file.ts";
export type { MissingData } from "./suite/fetch-data.ts";
export { folderNames } from "./suite/suite-file.ts";
export type { SampleDetail, SampledTask } from "./tasks/task.ts";
export { pairJudge, type PairJudgeOptions } from "./comparisons/win-rate.ts";
export {
  winRate,
  type JudgedPair,
  type PairPrompt,
  type PairRow,
  type WinRateOptions,
  type WrittenPrompt,
} from "./comparisons/win-rate.ts";
