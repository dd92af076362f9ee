/** The phases of the run, as `periodic-eval demo` trains them. */
export const phases = [
  { name: "coupling", dataset: "coupling.jsonl", learningRate: 2e-3 },
  { name: "em", dataset: "em.jsonl", learningRate: 2e-3 },
] as const;

/** The configuration of both phases, apart from the number of steps. */
export const sharedConfig = { seed: 42, batchSize: 16, warmupRatio: 0.1, logSteps: 1 } as const;
