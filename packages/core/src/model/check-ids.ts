import { PeriodicEvalError } from "@periodic-eval/contracts";

/**
 * Checks token ids. For an id outside of the vocabulary, backends read beyond the embedding or wrap, without an error.
 *
 * @throws PeriodicEvalError `model` for an id outside of the vocabulary.
 */
export function checkIds(ids: readonly number[], vocabSize: number): void {
  const wrong = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= vocabSize);
  if (wrong === undefined) return;
  throw new PeriodicEvalError({
    code: "model",
    where: "token ids",
    got: `the id ${wrong}`,
    expected: `an integer from 0 to ${vocabSize - 1}, the model's vocabulary`,
    fix: "Check that the tokenizer belongs to the model.",
  });
}
