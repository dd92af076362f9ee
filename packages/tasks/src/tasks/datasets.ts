import { mmluGroups } from "./mmlu-subjects.ts";

/** A dataset that tasks and evaluations read. */
export interface TaskDataset {
  /** Its name in `periodic-eval data get`, and its folder in a data folder. */
  readonly name: string;
  /** `hf:owner/dataset`. */
  readonly source: string;
  readonly licence: string;
  /** Tasks that read it; parts of a task (`mmlu_anatomy`) are left out. */
  readonly usedBy: readonly string[];
  /** Number of documents that are measured. */
  readonly documents: number;
  /** Number of documents that few-shot examples are drawn from. */
  readonly examples: number;
  readonly files: readonly DatasetFile[];
}

export interface DatasetFile {
  /** `hf:owner/dataset/config/split`. */
  readonly source: string;
  /** The path at which tasks look for the split in a data folder: `gsm8k/test.jsonl`. */
  readonly path: string;
}

/** Returns the files of splits `hf:owner/dataset/config/split`, as JSON Lines in the dataset's folder. */
const filesOf = (name: string, config: string, splits: readonly string[]): readonly DatasetFile[] =>
  splits.map((split) => ({ source: `${config}/${split}`, path: `${name}/${split}.jsonl` }));

/** The datasets of the built-in tasks. `arc_challenge` also holds the default questions of capability. */
export const datasets: readonly TaskDataset[] = [
  {
    name: "arc_challenge",
    source: "hf:allenai/ai2_arc",
    licence: "CC BY-SA 4.0",
    usedBy: ["capability", "arc_challenge"],
    documents: 1172,
    examples: 1119,
    files: filesOf("arc_challenge", "hf:allenai/ai2_arc/ARC-Challenge", ["test", "train"]),
  },
  {
    name: "arc_easy",
    source: "hf:allenai/ai2_arc",
    licence: "CC BY-SA 4.0",
    usedBy: ["arc_easy"],
    documents: 2376,
    examples: 2251,
    files: filesOf("arc_easy", "hf:allenai/ai2_arc/ARC-Easy", ["test", "train"]),
  },
  {
    name: "hellaswag",
    source: "hf:Rowan/hellaswag",
    licence: "MIT",
    usedBy: ["hellaswag"],
    documents: 10_042,
    examples: 39_905,
    files: filesOf("hellaswag", "hf:Rowan/hellaswag/default", ["validation", "train"]),
  },
  {
    name: "mmlu",
    source: "hf:cais/mmlu",
    licence: "MIT",
    usedBy: ["mmlu"],
    documents: 14_042,
    examples: 285,
    files: ["test", "dev"].flatMap((split) =>
      Object.values(mmluGroups)
        .flat()
        .map((subject) => ({
          source: `hf:cais/mmlu/${subject}/${split}`,
          path: `mmlu/${split}/${subject}_${split}.csv`,
        })),
    ),
  },
  {
    name: "truthfulqa",
    source: "hf:truthfulqa/truthful_qa",
    licence: "Apache 2.0",
    usedBy: ["truthfulqa_mc2"],
    documents: 817,
    examples: 0,
    files: filesOf("truthfulqa", "hf:truthfulqa/truthful_qa/multiple_choice", ["validation"]),
  },
  {
    name: "gsm8k",
    source: "hf:openai/gsm8k",
    licence: "MIT",
    usedBy: ["gsm8k"],
    documents: 1319,
    examples: 7473,
    files: filesOf("gsm8k", "hf:openai/gsm8k/main", ["test", "train"]),
  },
  {
    name: "ifeval",
    source: "hf:google/IFEval",
    licence: "Apache 2.0",
    usedBy: ["ifeval"],
    documents: 541,
    examples: 0,
    files: [{ source: "hf:google/IFEval/default/train", path: "ifeval/input_data.jsonl" }],
  },
];

/** Returns the dataset of a task, or of a part of it (`mmlu_anatomy`); null for a task without a known dataset. */
export function datasetOf(task: string): TaskDataset | null {
  return (
    datasets.find(({ usedBy }) => usedBy.some((name) => task === name || task.startsWith(`${name}_`))) ?? null
  );
}
