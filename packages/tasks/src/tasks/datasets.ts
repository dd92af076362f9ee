import { join } from "node:path";
import { fetchSplit, readSplit, type PlacedRow } from "@periodic-eval/data";
import { writeOnce } from "@periodic-eval/store";

const namesIn = (text: string): readonly string[] => text.trim().split(/\s+/);

/** The 57 subjects of MMLU (arXiv:2009.03300) in four groups, as lm-evaluation-harness 0.4.13 tags them. */
export const mmluGroups = {
  stem: namesIn(`
    abstract_algebra anatomy astronomy college_biology college_chemistry college_computer_science
    college_mathematics college_physics computer_security conceptual_physics electrical_engineering
    elementary_mathematics high_school_biology high_school_chemistry high_school_computer_science
    high_school_mathematics high_school_physics high_school_statistics machine_learning
  `),
  other: namesIn(`
    business_ethics clinical_knowledge college_medicine global_facts human_aging management marketing
    medical_genetics miscellaneous nutrition professional_accounting professional_medicine virology
  `),
  social_sciences: namesIn(`
    econometrics high_school_geography high_school_government_and_politics high_school_macroeconomics
    high_school_microeconomics high_school_psychology human_sexuality professional_psychology
    public_relations security_studies sociology us_foreign_policy
  `),
  humanities: namesIn(`
    formal_logic high_school_european_history high_school_us_history high_school_world_history
    international_law jurisprudence logical_fallacies moral_disputes moral_scenarios philosophy
    prehistory professional_law world_religions
  `),
};

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
          path: `mmlu/${split}/${subject}_${split}.jsonl`,
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

/** A split that `downloadDataset` has fetched. */
export interface DownloadedFile {
  /** `hf:owner/dataset/config/split`. */
  readonly source: string;
  /** The written file; without one, the split's folder in the cache. */
  readonly path: string;
  readonly rows: number;
  /** SHA-256 of the split's Parquet files, concatenated. */
  readonly sha256: string;
  readonly commit: string;
}

/**
 * Downloads splits into the cache shared with huggingface_hub, unless they are there, and reads them. With `out`, also writes
 * them as JSON Lines, once all of them could be read.
 *
 * @param where Names the dataset in errors.
 * @param out The folder to write to; null for the cache only. A file that exists with the same content stays.
 * @throws PeriodicEvalError as `fetchSplit` and `readSplit` of @periodic-eval/data do; `config` for a file that exists with
 *   other content, `store` for one that cannot be written.
 */
export async function downloadDataset(
  files: readonly DatasetFile[],
  where: string,
  out: string | null = null,
): Promise<readonly DownloadedFile[]> {
  const downloaded: DownloadedFile[] = [];
  const contents = new Map<string, string>();
  for (const { source, path } of files) {
    const split = await fetchSplit(source, { where, path: [], isDownload: true });
    const { rows, sha256 } = await readSplit(split, where);
    const target = out === null ? split.folder : join(out, path);
    if (out !== null) contents.set(target, jsonLines(rows));
    downloaded.push({ source, path: target, rows: rows.length, sha256, commit: split.commit });
  }
  await writeOnce(contents, "--out");
  return downloaded;
}

const jsonLines = (rows: readonly PlacedRow[]): string =>
  rows.map(({ row }) => `${JSON.stringify(row)}\n`).join("");
