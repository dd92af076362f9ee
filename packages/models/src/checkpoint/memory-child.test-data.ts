// Loads a model in a separate process, optionally measures it, and prints the peak of memory after each step.
// Arguments: backend, model folder, optional file of questions.
import * as tf from "@tensorflow/tfjs-core";
import { capabilityEvaluation, measure } from "@periodic-eval/core";
import { inMemory } from "@periodic-eval/tfjs";
import { useBackend } from "../backend/use-backend.ts";
import { loadTokenizer } from "../tokenizer/load-tokenizer.ts";
import { loadCausalLM } from "./load-causal-lm.ts";

const [backend, folder, questions] = process.argv.slice(2) as [string, string, string?];
const peak = () => process.resourceUsage().maxRSS * 1024;

await useBackend({ backend });
// The first product allocates the backend's own memory.
tf.tidy(() => tf.matMul(tf.ones([8, 8]), tf.ones([8, 8])).dataSync());
const before = peak();
const model = await loadCausalLM(folder);
const weights = model.weights().reduce((bytes, { variable }) => bytes + 4 * variable.size, 0);
const loading = peak();
if (questions !== undefined) {
  const evaluation = capabilityEvaluation({ questions, method: "cloze", subsample: { n: 20, seed: 42 } });
  await measure(evaluation, inMemory(model, await loadTokenizer(folder)));
}
process.stdout.write(JSON.stringify({ before, weights, loading, scoring: peak() }));
