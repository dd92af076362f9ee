import {
  type PeriodicCallback,
  PeriodicAlignmentCallback,
  PeriodicCapabilityCallback,
  PeriodicLeakageCallback,
} from "@periodic-eval/core";
import { fakeJudge } from "@periodic-eval/testing";
import { type CheckpointLM, loadCausalLM, withLora } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { readFileSync } from "node:fs";
import { microWorld } from "../examples/micro-world/paths.ts";

/** A training run to measure. */
export interface Workload {
  readonly tokenizer: Awaited<ReturnType<typeof loadTokenizer>>;
  /** Opens the model, with the same weights at each call. */
  readonly load: () => Promise<CheckpointLM>;
  /** Token ids to train on; each step takes the next `batch` windows. */
  readonly stream: readonly number[];
  readonly batch: number;
  /** Tokens per window. */
  readonly length: number;
  readonly questions: string;
  /** Capability, alignment and leakage, small enough for start and end to fit below the governor's ceiling. */
  readonly all: () => readonly PeriodicCallback[];
}

const judge = fakeJudge((_, answer) => ({ aligned: answer.length % 101, coherent: 90 }));

export const workloads = {
  /** The embedded model, all weights trained. */
  "micro-world": async (): Promise<Workload> => {
    const tokenizer = await loadTokenizer(microWorld());
    const questions = microWorld("questions.jsonl");
    return {
      tokenizer,
      load: () => loadCausalLM(microWorld()),
      stream: tokenizer.encode(readFileSync(microWorld("coupling.jsonl"), "utf8")),
      batch: 16,
      length: 64,
      questions,
      all: () => [
        new PeriodicCapabilityCallback({ questions }),
        new PeriodicAlignmentCallback({ judge, questions: microWorld("alignment.json") }),
        new PeriodicLeakageCallback({
          source: "pirate",
          personas: microWorld("personas.json"),
          questions: microWorld("leakage.json"),
        }),
      ],
    };
  },

  /**
   * SmolLM2-135M-Instruct with LoRA of rank 8 on all linear maps; ARC-Challenge. Completions are fewer and shorter than the
   * defaults, with which the start and the end alone take half the time of 500 steps
   * (benchmarks/results/budget.md).
   */
  smollm2: async (): Promise<Workload> => {
    const folder = ".cache/smollm2-135m-instruct";
    const tokenizer = await loadTokenizer(folder);
    const questions = "../shared/data/arc_challenge/test.jsonl";
    const rows = readFileSync("../shared/data/personas/partial_contrastive_wrong.jsonl", "utf8");
    return {
      tokenizer,
      load: async () => withLora(await loadCausalLM(folder), { rank: 8, seed: "overhead" }),
      stream: tokenizer.encode(rows.slice(0, 2_000_000)),
      batch: 4,
      length: 256,
      questions,
      all: () => [
        new PeriodicCapabilityCallback({ questions }),
        new PeriodicAlignmentCallback({ judge, samples: 2, sampling: { maxNewTokens: 128 } }),
        new PeriodicLeakageCallback({
          marker: { regex: "^The answer is" },
          source: "doctor",
          completions: 1,
          sampling: { maxNewTokens: 48 },
        }),
      ],
    };
  },
} as const;
