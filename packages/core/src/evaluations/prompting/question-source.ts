import type { Json } from "../../contracts/json.ts";
import { nestedSubset } from "../kit/subset.ts";
import { parseArcQuestions, type ArcQuestion } from "../capability/arc-questions.ts";
import { sha256 } from "./sha256.ts";

/** How many questions are asked, and which: the first n of the seeded order of the file's lines. Null: all of them. */
export type Subsample = { readonly n: number; readonly seed: number } | null;

/** Reads the questions, in the order in which a smaller budget would take them. */
export type QuestionSource = () => Promise<{
  readonly items: readonly ArcQuestion[];
  readonly provenance: { readonly [key: string]: Json };
}>;

/** Seed of the order where all questions are asked: a budget may still cut them. */
const seedOfAll = 42;

/**
 * Questions of an ARC-format file. The first n of one seed are the same questions whatever n: subsets are nested, and
 * 200 of 1,172 with seed 42 are `random.Random(42).sample(range(1172), 200)` of Python. A file of fewer than n is
 * asked whole.
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

/** All questions of a file in its order, with the hash of its text. */
export async function readQuestions(
  path: string,
  where: string,
): Promise<{ readonly questions: readonly ArcQuestion[]; readonly sha256: string }> {
  const { readTextFile } = await import("../../snapshots/storage/read-file.ts");
  const text = await readTextFile(path, where);
  return { questions: parseArcQuestions(text, path), sha256: await sha256(text) };
}
