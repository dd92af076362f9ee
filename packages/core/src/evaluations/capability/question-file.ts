import type { Json, SourceOption } from "@periodic-eval/contracts";
import { nestedSubset } from "../kit/subset.ts";
import { readQuestions, type ArcQuestion } from "@periodic-eval/data";
import { checkKeys, distinctQuestions } from "./question-quality.ts";
import { atOption } from "@periodic-eval/contracts/options";

/** The questions of ARC-Challenge's test split (arXiv:1803.05457): 1,172 questions of school science. */
export const defaultQuestions = "hf:allenai/ai2_arc";

/** Which questions of a file are used: the first n in the seeded order. Null: all of them. */
export type Subsample = { readonly n: number; readonly seed: number } | null;

/** Reads the questions, in the order in which a smaller budget uses them. */
export type QuestionSource = () => Promise<{
  /** Distinct questions. */
  readonly items: readonly ArcQuestion[];
  /** Questions that were left out because they repeat others. */
  readonly repeated: number;
  readonly provenance: { readonly [key: string]: Json };
}>;

/** Seed of the order if all questions are used: a budget may still reduce them. */
const seedOfAll = 42;

/**
 * Returns the questions of a file (JSON Lines, a JSON array or Parquet, by its extension) or of a dataset on the Hugging Face hub
 * (`hf:owner/dataset[/config][/split]`), in the ARC format. Subsets with one seed are nested; 200 of 1,172 with seed 42 are
 * Python's `random.Random(42).sample(range(1172), 200)`. A file of fewer than n questions is used whole.
 *
 * @param option The option that holds the source, for the error of a source that cannot be read.
 */
export function questionFile(source: string, subsample: Subsample, option: SourceOption): QuestionSource {
  const read = async () => {
    const read = await readQuestions(source, option);
    checkKeys(read.questions, source);
    return read;
  };
  return async () => {
    const { questions, sha256: hash, hub } = await atOption(option, read);
    const chosen = nestedSubset(questions, subsample ?? { n: null, seed: seedOfAll });
    const items = distinctQuestions(chosen);
    return {
      items,
      repeated: chosen.length - items.length,
      provenance: { ...hub, file_sha256: hash, file_questions: questions.length, subsample },
    };
  };
}
