export type { ChatOptions, Task, TaskOptions } from "./tasks/types.ts";
export { Evaluator, type SuiteRun } from "./suite/evaluator.ts";
export type { CheckpointOptions, EvaluatorOptions, TaskProgress } from "./suite/evaluator-options.ts";
export type { CheckpointSource, EvaluableTrainer, OpenedModel, OpenModel } from "./suite/ports.ts";
export type { TaskRegistry } from "./suite/open-tasks.ts";
export { appendRun, readMetrics, type MetricsFile, type MetricsRun } from "./suite/metrics-file.ts";
export {
  defaultSuitePath,
  hashOfSuite,
  readSuite,
  smokeOf,
  type Suite,
  type SuiteTask,
} from "./suite/suite-file.ts";
export type { SampledTask, SampleDetail } from "./suite/harness/samples.ts";
export { klToReference, type KLToReferenceOptions } from "./comparisons/kl-to-reference.ts";
export { pairJudge, type PairJudgeOptions } from "./comparisons/pair-judge.ts";
export {
  winRate,
  type JudgedPair,
  type PairPrompt,
  type PairRow,
  type WinRateOptions,
} from "./comparisons/win-rate.ts";
