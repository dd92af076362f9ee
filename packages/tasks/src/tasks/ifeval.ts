import { PeriodicEvalError } from "@periodic-eval/core";
import { quoteValue } from "@periodic-eval/core/internal";
import { rolloutEvaluation } from "../families/rollout.ts";
import { readDocument, type IFEvalDocument } from "../ifeval/ifeval-document.ts";
import { ifevalMetrics } from "../ifeval/ifeval-metrics.ts";
import { scoreResponse, type IFEvalScores } from "../ifeval/score.ts";
import type { SampledTask } from "./task.ts";
import { checkTaskOptions } from "./task-options.ts";
import { splitOf } from "./split-source.ts";
import { documentsOnce, sampleOf, type TaskDocument, type TaskReading } from "./task-documents.ts";

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
  // There are no examples, and so no answers.
  answer: () => "",
};

const [name, version, defaultShots, maxNewTokens] = ["ifeval", "4.0", 0, 1280];

/**
 * IFEval (arXiv:2311.07911) as lm-evaluation-harness 0.4.13 has it: the prompt as it is, a greedy completion of at most
 * 1,280 tokens, ended by the model alone; of which 25 kinds of check say whether it does as it was told, strictly and
 * loosely (`scoreResponse`, where the deviations are told), by prompt and by instruction: `prompt_level_strict_acc`,
 * `inst_level_strict_acc`, `prompt_level_loose_acc`, `inst_level_loose_acc`. A prompt that does not fit is cut on its left,
 * and is counted (`truncated`).
 *
 * Data: `{key, prompt, instruction_id_list, kwargs}`: `input_data.jsonl` in a folder, or `hf:google/IFEval`. No examples.
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
  open(options) {
    checkTaskOptions(name, options);
    const { shots = defaultShots, subsample } = options;
    if (shots > 0) throw examplesAsked(shots);
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

const examplesAsked = (shots: number) =>
  new PeriodicEvalError({
    code: "config",
    where: `${name}.shots`,
    got: quoteValue(shots),
    expected: "0: its prompts have no answers that examples could show",
    fix: "Leave it out.",
  });
