import { createCausalLM, withLora, type CheckpointLM, type LoraLM } from "@periodic-eval/models";
import { tinyLlama, tokenizer } from "../testing/tiny-run.test-data.ts";
import type { SDPOExample } from "./example.ts";
import { SDPOTrainer } from "./sdpo-trainer.ts";
import type { SDPOTrainerOptions } from "./sdpo-config.ts";

const end = tokenizer.stopIds[0]!;
export const responseOf = (text: string) => [...tokenizer.encode(text), end];
export const promptOf = (question: string) => ({ messages: [{ role: "user", content: question }] });

/** Three answers of different lengths, with feedback. */
export const answers = [
  { prompt: promptOf("a?"), response: responseOf("abc"), feedback: "b" },
  { prompt: promptOf("what?"), response: responseOf("h"), feedback: "no h" },
  { prompt: promptOf("and?"), response: responseOf("gfedcba"), feedback: "short" },
];

/** Adds old log-probs as if each token had been drawn with probability 1/7. */
export const drawn = (some: readonly Omit<SDPOExample, "oldLogProbs">[] = answers): SDPOExample[] =>
  some.map((answer) => ({ ...answer, oldLogProbs: answer.response.map(() => -Math.log(7)) }));

export const config = { learningRate: 0.02 } as const;

/** Creates a small Llama with an adapter, and disposes both at the end. */
export async function withModel<T>(
  use: (lora: LoraLM, base: CheckpointLM) => Promise<T>,
  { seed = "sdpo", dropout = 0, loraSeed = "0" } = {},
): Promise<T> {
  const base = createCausalLM({ ...tinyLlama, tie_word_embeddings: true }, { seed, initStd: 0.3 });
  const lora = withLora(base, { rank: 2, dropout, seed: loraSeed });
  return use(lora, base).finally(() => {
    lora.dispose();
    base.dispose();
  });
}

/** Creates a trainer that learns fast, and disposes it at the end. */
export async function withTrainer<T>(
  options: Omit<SDPOTrainerOptions, "tokenizer">,
  use: (trainer: SDPOTrainer) => Promise<T>,
): Promise<T> {
  const trainer = new SDPOTrainer({ config, tokenizer, ...options });
  return use(trainer).finally(() => trainer.dispose());
}
