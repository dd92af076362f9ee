import type { Json } from "../../contracts/json.ts";
import { nestedSubset } from "../kit/subset.ts";
import { parseArcQuestions, type ArcQuestion } from "./arc-questions.ts";
import { sha256 } from "../prompting/sha256.ts";

/** Which questions of a file are used: the first n in the seeded order. Null: all of them. */
export type Subsample = { readonly n: number; readonly seed: number } | null;

/** Reads the questions, in the order in which a smaller budget uses them. */
export type QuestionSource = () => Promise<{
  readonly items: readonly ArcQuestion[];
  readonly provenance: { readonly [key: string]: Json };
}>;

/** Seed of the order if all questions are used: a budget may still reduce them. */
const seedOfAll = 42;

/**
 * Returns a source of questions from a file in the ARC format. Subsets with one seed are nested; 200 of 1,172 with seed 42 are
 * Python's `random.Random(42).sample(range(1172), 200)`. A file of fewer than n questions is used whole.
 *
 * @param where Names the option that holds the path, for the error of an unreadable file.
 */
export function questionFile(path: string, subsample: Subsample, where: string): QuestionSource {
  return async () => {
    const { questions, sha256: hash } = await readQuestions(path, where);
    return {
      items: nestedSubset(questions, subsample ?? { n: null, seed: seedOfAll }),
      provenance: { file_sha256: hash, file_questions: questions.length, subsample },
    };
  };
}

/** Reads all questions of a file, in its order, and the SHA-256 of its text. */
export async function readQuestions(
  path: string,
  where: string,
): Promise<{ readonly questions: readonly ArcQuestion[]; readonly sha256: string }> {
  const { readTextFile } = await import("../../snapshots/storage/read-file.ts");
  const text = await readTextFile(path, where);
  return { questions: parseArcQuestions(text, path), sha256: await sha256(text) };
}
