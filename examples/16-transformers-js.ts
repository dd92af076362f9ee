// Measures a model of @huggingface/transformers, and compares it with the same model on this library's engine.
// Run: npm install --no-save @huggingface/transformers@4.3.1 && npm run example 16
import { capabilityEvaluation, measure } from "@periodic-eval/core";
import { inMemory } from "@periodic-eval/tfjs";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { fromTransformers } from "@periodic-eval/models/transformers";
import { exportOnnx } from "./micro-world/export-onnx.ts";
import { isShort, microWorld, runDir } from "./micro-world/paths.ts";

// This repository does not install the package, so TypeScript must not look for it.
const packageName: string = "@huggingface/transformers";
const { AutoModelForCausalLM } = await import(packageName);

// Models of the hub have ONNX files already: from_pretrained("onnx-community/Qwen2.5-0.5B-Instruct", { dtype: "q4" }).
const folder = `${runDir("transformers-js")}/onnx`;
await exportOnnx(microWorld(), folder);
const onnx = await AutoModelForCausalLM.from_pretrained(folder, { dtype: "fp32" });
const tokenizer = await loadTokenizer(folder); // or its AutoTokenizer, unless the folder has a chat_template.jinja

await useBackend();
const own = await loadCausalLM(microWorld());
const capability = capabilityEvaluation({
  questions: microWorld("questions.jsonl"),
  subsample: { n: isShort ? 12 : 200, seed: 42 },
});
for (const model of [fromTransformers(tokenizer, onnx), inMemory(own, tokenizer)]) {
  const { snapshot } = await measure(capability, model);
  const { value, ci95 } = snapshot.metrics["accuracy"]!;
  console.log(`${model.identity.engine}: accuracy ${value?.toFixed(4)} ${JSON.stringify(ci95)}`);
}
own.dispose();
await onnx.dispose();
