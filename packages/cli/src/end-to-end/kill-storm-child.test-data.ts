// The process that kill-storm.slow.test.ts kills. It trains a tiny model in two phases with capability and an evaluation that is
// graded row by row during training, so that kills hit generating, grading and writing. It appends metrics to
// <run>/metrics.jsonl, also after a resume. Arguments: the run's folder, the folder of the embedded model, and by how many hours the
// system's clock jumps half a second after training begins.
import {
  atEnd,
  atStart,
  defineEvaluation,
  everyPercent,
  PeriodicCallback,
  PeriodicCapabilityCallback,
  type Logger,
} from "@periodic-eval/core";
import { createCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { runPipeline, type MessagesRow } from "@periodic-eval/trainers";
import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const [runDir, world, hours = "0"] = process.argv.slice(2) as [string, string, string?];

let jump = 0;
globalThis.Date = new Proxy(Date, {
  construct: (date, values: [] | [number]) =>
    values.length === 0 ? new date(date.now() + jump) : new date(...values),
});

/** Its grading is slow, like a judge's, so that kills hit it. */
const replies = defineEvaluation({
  name: "replies",
  version: "1",
  needs: ["generate"],
  items: () => ["Hello.", "Who are you?", "Where is the mill?"].map((text) => ({ id: text, text })),
  async measure(model, items, { signal, seed }) {
    const completions = await model.generate(
      items.map(({ text, id }) => ({
        prompt: { messages: [{ role: "user", content: text }] },
        sampling: { maxNewTokens: 16, temperature: 1, seed: `${seed}/${id}` },
      })),
      { signal },
    );
    return items.map((item, i) => ({ ...item, reply: completions[i]!.text }));
  },
  async grade(rows) {
    const graded = [];
    for (const row of rows) {
      await sleep(15);
      graded.push({ ...row, hasSpace: row.reply.includes(" ") });
    }
    return graded;
  },
  metrics: ({ rate }) => ({ has_space: rate((row) => row.hasSpace, { sampled: true }) }),
});

const dataset: MessagesRow[] = Array.from({ length: 24 }, (_, i) => ({
  messages: [
    { role: "user", content: `Where is house ${i}?` },
    { role: "assistant", content: `House ${i} is by the river.` },
  ],
}));

await useBackend({ backend: "wasm" });
const tokenizer = await loadTokenizer(world);
const model = createCausalLM(
  {
    model_type: "llama",
    vocab_size: tokenizer.vocabSize,
    hidden_size: 16,
    intermediate_size: 32,
    num_hidden_layers: 1,
    num_attention_heads: 2,
    num_key_value_heads: 2,
    max_position_embeddings: 128,
    rms_norm_eps: 1e-5,
    rope_theta: 10_000,
    tie_word_embeddings: true,
    hidden_act: "silu",
  },
  { seed: "storm", dropout: 0.1 },
);
console.log("training");
setTimeout(() => (jump = Number(hours) * 3_600_000), 500).unref();
const callbacks = () => [
  new PeriodicCapabilityCallback({ questions: `${world}/questions.jsonl`, subsample: { n: 6, seed: 42 } }),
  new PeriodicCallback(replies, { schedule: [atStart(), everyPercent(30), atEnd()] }),
];
const config = { maxSteps: 12, batchSize: 4, saveSteps: 3, learningRate: 1e-3, validationShare: 0.2 };
mkdirSync(runDir, { recursive: true });
const stream: Logger = {
  name: "stream",
  train({ tokens_per_second: _time, ...metrics }, { phase, step }) {
    appendFileSync(join(runDir, "metrics.jsonl"), `${JSON.stringify({ phase, step, ...metrics })}\n`);
  },
};
await runPipeline(
  [
    { phase: "first", dataset, config, callbacks: callbacks() },
    { phase: "second", dataset, config, callbacks: callbacks() },
  ],
  // No ceiling: the measurements must not depend on timing.
  { model, tokenizer, runDir, session: { budget: { overheadPercent: null } }, loggers: [stream] },
);
