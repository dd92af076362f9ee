import { configError } from "@periodic-eval/contracts/options";
import { rolloutEvaluation } from "../families/rollout.ts";
import { readDocument, type IFEvalDocument } from "../ifeval/ifeval-document.ts";
import { ifevalMetrics } from "../ifeval/ifeval-metrics.ts";
import { scoreResponse, type IFEvalScores } from "../ifeval/score.ts";
import type { SampledTask } from "./task.ts";
import { checkTaskOptions } from "./task-options.ts";
import { splitOf } from "./split-source.ts";
import { documentsOnce, sampleOf, sourcesOf, type TaskDocument, type TaskReading } from "./task-documents.ts";

const train = splitOf("train", "default");

const reading: TaskReading<IFEvalDocument> = {
  task: "ifeval",
  parts: [
    {
      subject: null,
      groups: [],
      description: "",
      test: { ...train, files: ["input_data.jsonl", "ifeval_input_data.jsonl", ...train.files] },
      pool: null,
    },
  ],
  read: ({ row, place }) => readDocument(row, place),
  ask: ({ prompt }) => prompt,
  // IFEval has no few-shot examples, so answers are never shown.
  answer: () => "",
};

const [name, version, defaultShots, maxNewTokens] = ["ifeval", "4.0", 0, 1280];

/**
 * IFEval (arXiv:2311.07911), equal to lm-evaluation-harness 0.4.13: the plain prompt and a greedy completion of at most 1,280 tokens
 * that only the model ends. 25 kinds of instructions are checked strictly and loosely (`scoreResponse` lists the deviations).
 * Metrics, by prompt and by instruction: `prompt_level_strict_acc`, `inst_level_strict_acc`, `prompt_level_loose_acc`,
 * `inst_level_loose_acc`. A prompt that does not fit is cut on its left and counted (`truncated`).
 *
 * Data: rows of `{key, prompt, instruction_id_list, kwargs}`: `input_data.jsonl` in a folder, or `hf:google/IFEval`. No few-shot
 * examples.
 */
export const ifeval: SampledTask = {
  name,
  version,
  defaultShots,
  settings: {
    output_type: "generate_until",
    max_gen_toks: maxNewTokens,
    until: [],
    do_sample: false,
    temperature: 0,
  },
  sample: (_, item) => ({
    ...sampleOf(item),
    target: 0,
  }),
  sources: (options) => sourcesOf(reading, options, 0),
  open(options) {
    checkTaskOptions(name, options);
    const { shots = defaultShots, subsample } = options;
    if (shots > 0)
      throw configError({
        where: `${name} options`,
        path: ["shots"],
        value: shots,
        expected: "0, because IFEval's prompts have no reference answers to show as examples",
        fix: "Leave it out.",
      });
    return rolloutEvaluation<TaskDocument<IFEvalDocument>, IFEvalScores>({
      name,
      version,
      documents: documentsOnce(reading, options, shots),
      ...(subsample !== undefined && { subsample }),
      prompt: ({ prompt }) => prompt,
      maxNewTokens,
      overflow: "left",
      score: ({ question }, response) => scoreResponse(question, response),
      metrics: ifevalMetrics,
    });
  },
};
