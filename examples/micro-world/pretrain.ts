// Pretrains the model that ships with the command line, on the fastest available engine:
//   npx tsx -C @periodic-eval/source examples/micro-world/pretrain.ts [--seed 1] [--out FOLDER] [--backend wasm]
// The folder must contain the output of write-data.ts. The script writes weights and configuration into it, and prints the log.
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { AdamW, GradientNorm } from "@periodic-eval/trainers";
import { drawBatch, parts } from "./curriculum.ts";
import { initStd, modelConfig } from "./model-config.ts";
import { seededDraw } from "./random.ts";
import { rowsOf } from "./token-rows.ts";
import { accuracyOf } from "./accuracy.ts";
import { trainStep } from "./train-step.ts";

const { values: options } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    out: { type: "string", default: "packages/cli/assets/micro-world" },
    backend: { type: "string" },
  },
});

const questions = join(options.out, "questions.jsonl");
const tokenizer = await loadTokenizer(options.out);
const { name: engine } = await useBackend(options.backend === undefined ? {} : { backend: options.backend });
const model = createCausalLM(modelConfig, { seed: `micro-world/${options.seed}`, initStd });
const gradientNorm = new GradientNorm();
const optimizer = new AdamW(model.trainables(), { betas: [0.9, 0.98], weightDecay: 0.01, decay: "no-norms" });
const weights = model.trainables().reduce((total, variable) => total + variable.size, 0);
console.log(`engine ${engine}, seed ${options.seed}, ${weights} weights`);

const startTime = performance.now();
let tokens = 0;
let step = 0;
for (const part of parts) {
  const draw = seededDraw(`pretrain/${options.seed}/${part.name}`);
  const recent: number[] = [];
  for (let i = 0; i < part.maxSteps; i += 1) {
    const rows = rowsOf(drawBatch(part.mixture, part.documents, draw), tokenizer);
    const result = await trainStep(model, { optimizer, gradientNorm }, rows, part.learningRate(i));
    tokens += result.tokens;
    step += 1;
    recent.push(result.accuracy);
    if (recent.length > 20) recent.shift();
    const accuracy = recent.reduce((sum, share) => sum + share, 0) / recent.length;
    const isReached = part.until !== undefined && recent.length === 20 && accuracy >= part.until;
    if (step % 20 === 0 || isReached) {
      const seconds = Math.round((performance.now() - startTime) / 1000);
      console.log(
        `${part.name} step ${step} loss ${result.loss.toFixed(3)} accuracy ${accuracy.toFixed(3)} tokens ${tokens} seconds ${seconds}`,
      );
    }
    if (part.measureEvery !== undefined && (i + 1) % part.measureEvery === 0) await measure();
    if (isReached) break;
  }
}
await model.save(options.out, { dtype: "BF16" });

async function measure(): Promise<void> {
  const { letters, cloze, n } = await accuracyOf(model, tokenizer, questions);
  console.log(`measurement step ${step} letters ${percent(letters)} cloze ${percent(cloze)} n ${n}`);
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
