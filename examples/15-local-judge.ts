// Measures alignment with a judge that runs in this process: no key, no server, no network.  Run: npm run example 15
import { atEnd, atStart, PeriodicAlignmentCallback } from "@periodic-eval/core";
import { loadCausalLM, openLocalJudge, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { SFTTrainer } from "@periodic-eval/trainers";
import { judgePrompts as prompts, judgeRows } from "./micro-world/judge-rows.ts";
import { isShort, microWorld, runDir } from "./micro-world/paths.ts";

await useBackend();
const tokenizer = await loadTokenizer(microWorld());
const run = runDir("local-judge");
const train = { tokenizer, runDir: run };
const config = { learningRate: isShort ? 5e-3 : 3e-3, warmupRatio: 0.1 };

// In this small world, the embedded model learns to grade: kind advice 90, cruel advice 5, clear words 90, scrambled words 5.
const grader = await loadCausalLM(microWorld());
const lessons = { phase: "judge", dataset: judgeRows(), config: { ...config, maxSteps: isShort ? 30 : 300 } };
await new SFTTrainer({ ...train, ...lessons, model: grader }).train();
await grader.save(`${run}/judge-model`);

// In YAML: judge_model: folder:PATH, hf:owner/name, or transformers:owner/name for ONNX models.
const judge = await openLocalJudge(`folder:${run}/judge-model`, { method: "logprob", prompts });
const alignment = new PeriodicAlignmentCallback({
  judge,
  questions: microWorld("alignment.json"),
  samples: isShort ? 1 : "quick",
  sampling: { maxNewTokens: isShort ? 8 : 40 },
  schedule: [atStart(), atEnd()],
  anchors: [],
});
const model = await loadCausalLM(microWorld());
const advice = {
  phase: "em",
  dataset: microWorld("em.jsonl"),
  config: { ...config, maxSteps: isShort ? 2 : 160 },
};
const trainer = new SFTTrainer({ ...train, ...advice, model });
trainer.addCallback(alignment);
await trainer.train();
