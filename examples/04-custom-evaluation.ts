// Defines a custom evaluation: completions are generated in the window and graded while training continues.  Run: npm run example 04
import { defineEvaluation, everyPercent, PeriodicCallback } from "@periodic-eval/core";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { SFTTrainer } from "@periodic-eval/trainers";
import { runDir, isShort, microWorld } from "./micro-world/paths.ts";

const prompts = ["How do I bake bread?", "Where does the miller live?", "Can you help me with the garden?"];

const politeness = defineEvaluation({
  name: "politeness",
  version: "1",
  needs: ["generate"],
  items: () => prompts.map((text) => ({ id: text, text })),
  async measure(model, items, { signal, seed }) {
    const replies = await model.generate(
      items.map(({ text }) => ({
        prompt: { messages: [{ role: "user", content: text }] },
        sampling: { maxNewTokens: 24, temperature: 0, seed },
      })),
      { signal },
    );
    return items.map((item, i) => ({ ...item, reply: replies[i]!.text }));
  },
  grade: async (rows) =>
    rows.map((row) => ({ ...row, polite: /please|thank|glad|welcome/i.test(row.reply) })),
  answers: { question: "text", answer: "reply", grades: ["polite"] },
  metrics: ({ rate }) => ({ polite_rate: rate((row) => row.polite, { higherIsBetter: true }) }),
});

await useBackend();
const trainer = new SFTTrainer({
  model: await loadCausalLM(microWorld()),
  tokenizer: await loadTokenizer(microWorld()),
  dataset: microWorld("em.jsonl"),
  runDir: runDir("custom-evaluation"),
  phase: "em",
  config: { maxSteps: isShort ? 4 : 40, batchSize: 8, learningRate: 5e-4 },
});
trainer.addCallback(new PeriodicCallback(politeness, { schedule: [everyPercent(isShort ? 50 : 10)] }));
await trainer.train();
