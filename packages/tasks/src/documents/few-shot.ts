import { pythonRandom } from "@periodic-eval/core/random";
import { configError, integerFromZero, parseOptions } from "@periodic-eval/contracts/options";
import * as z from "zod";

export interface FewShot<D> {
  /** The documents that examples are drawn from, in the file's order. */
  readonly pool: readonly D[];
  /** Number of examples before each document. */
  readonly shots: number;
  /** Default 1234, as in lm-evaluation-harness. */
  readonly seed?: number;
  /**
   * `random` (default) draws new examples for each document, from one stream over all documents. `first` takes the first of
   * the pool, as MMLU does (`first_n`).
   */
  readonly sampler?: "random" | "first";
  /**
   * Whether two rows are the same. Set it if the pool contains the documents themselves: one more example is then drawn, and
   * a document is left out of its examples.
   */
  readonly isSame?: (a: D, b: D) => boolean;
}

const drawSchema = z.object({ shots: integerFromZero, fewshotSeed: z.int("an integer") });

/**
 * Draws the examples of each document, as lm-evaluation-harness 0.4.13 does (`api/samplers.py`, Python's `Random(1234)`). The
 * examples of the i-th document depend on the number of draws before it: pass documents in the file's order, from the first.
 *
 * @param where The task's name, for errors: `gsm8k`.
 * @returns The examples by document, in the order of `documents`.
 * @throws PeriodicEvalError `config` if `shots` exceeds the pool.
 */
export function drawExamples<D>(
  documents: readonly D[],
  { pool, shots, seed = 1234, sampler = "random", isSame }: FewShot<D>,
  where: string,
): readonly (readonly D[])[] {
  const options = `${where} options`;
  parseOptions(options, drawSchema, { shots, fewshotSeed: seed });
  if (shots === 0) return documents.map(() => []);
  const { sample } = pythonRandom(seed);
  const drawn = (count: number, from: readonly D[]) => {
    if (count > from.length)
      throw configError({
        where: options,
        path: ["shots"],
        got: `${shots} with a pool of ${pool.length}`,
        expected:
          count > shots
            ? "fewer examples than the pool has: one more is drawn, to replace the question itself"
            : "at most the size of the pool",
        fix: "Lower `shots`, or name a larger pool.",
      });
    return sampler === "first" ? from.slice(0, count) : sample(from.length, count).map((at) => from[at]!);
  };
  return documents.map((document) => {
    if (isSame === undefined) return drawn(shots, pool);
    const withoutSame = (rows: readonly D[]) => rows.filter((row) => !isSame(row, document));
    if (sampler === "first") return drawn(shots, withoutSame(pool));
    const examples = withoutSame(drawn(shots + 1, pool)).slice(0, shots);
    // Rows that repeat the document may remove more examples than the one that was drawn in addition.
    return examples.length === shots ? examples : drawn(shots, withoutSame(pool));
  });
}
