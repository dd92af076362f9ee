export type { ChatOptions, Task, TaskOptions } from "./tasks/types.ts";
export type { BenchmarkChatTemplate } from "./benchmark/chat-template.ts";
export { benchmarkEvaluation } from "./benchmark/evaluation.ts";
export {
  BenchmarkEvaluator,
  type BenchmarkEvaluatorOptions,
  type EvaluateOptions,
} from "./benchmark/evaluator.ts";
export { readBenchmark, type Benchmark } from "./benchmark/folder.ts";
export {
  benchmarkMetrics,
  type MetricDefinition,
  type MetricRegistry,
  type MetricSetup,
} from "./benchmark/metrics.ts";
export type { BenchmarkOptions } from "./benchmark/options.ts";
export { folderStore } from "./benchmark/stores/folder-store.ts";
export { httpStore, type HttpStoreOptions } from "./benchmark/stores/http-store.ts";
export type { BenchmarkStore } from "./benchmark/stores/store.ts";
export type { StoreFailure } from "./benchmark/stores/uploads.ts";
export type * from "./benchmark/types.ts";
export type { Verified, Verifier, VerifierTask } from "./benchmark/verifiers/module.ts";
