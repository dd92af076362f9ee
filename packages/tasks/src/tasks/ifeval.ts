import { readDocument, type IFEvalDocument } from "../ifeval/ifeval-document.ts";
import { ifevalMetrics, scoreResponse, type IFEvalScores } from "../ifeval/score.ts";
import { splitOf } from "./split-source.ts";
import { onePart } from "./task-documents.ts";
import { generationTask } from "./task-kinds.ts";
import type { SampledTask } from "./task.ts";

const train = splitOf("train", "default");

/**
 * IFEval (arXiv:2311.07911), equal to lm-evaluation-harness 0.4.13: the plain prompt and a greedy completion of at most 1,280 tokens
 * that only the model ends. 25 kinds of instructions are checked strictly and loosely (`scoreResponse` lists the deviations).
 * Metrics, by prompt and by instruction: `prompt_level_strict_acc`, `inst_level_strict_acc`, `prompt_level_loose_acc`,
 * `inst_level_loose_acc`. A prompt that does not fit is cut on its left and counted (`truncated`).
 *
 * Data: rows of `{key, prompt, instruction_id_list, kwargs}`: `input_data.jsonl` in a folder, or `hf:google/IFEval`. No few-shot
 * examples.
 */
export const ifeval: SampledTask = generationTask<IFEvalDocument, IFEvalScores>({
  name: "ifeval",
  version: "4.0",
  defaultShots: 0,
  maxNewTokens: 1280,
  stop: [],
  parts: onePart({ ...train, files: ["input_data.jsonl", "ifeval_input_data.jsonl", ...train.files] }, null),
  read: ({ row, place }) => readDocument(row, place),
  ask: ({ prompt }) => prompt,
  answer: null,
  target: () => 0,
  score: scoreResponse,
  metrics: ifevalMetrics,
});
