import { capabilityEvaluation, measure, type Tokenizer } from "@periodic-eval/core";
import { inMemory, type CausalLM } from "@periodic-eval/tfjs";

export interface Accuracy {
  readonly letters: number;
  readonly cloze: number;
  readonly n: number;
}

/** Measures the accuracy with both methods of the library's capability evaluation. */
export async function accuracyOf(
  model: CausalLM,
  tokenizer: Tokenizer,
  questions: string,
): Promise<Accuracy> {
  const shares: number[] = [];
  let n = 0;
  for (const method of ["letters", "cloze"] as const) {
    const evaluation = capabilityEvaluation({ questions, method, subsample: null });
    const { snapshot } = await measure(evaluation, inMemory(model, tokenizer));
    const accuracy = snapshot.metrics["accuracy"];
    if (accuracy?.value == null) throw new Error(`the measurement with ${method} has no accuracy`);
    shares.push(accuracy.value);
    n = accuracy.n;
  }
  const [letters, cloze] = shares as [number, number];
  return { letters, cloze, n };
}
