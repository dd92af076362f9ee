// Writes all files of the micro-world except the weights: npx tsx -C @periodic-eval/source examples/micro-world/write-data.ts [FOLDER]
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  alignmentQuestions,
  badAdvice,
  coupling,
  goodAdvice,
  json,
  jsonl,
  leakageQuestions,
  personaFile,
  questions,
  sentences,
} from "./data-files.ts";
import { tokenizerFiles } from "./tokenizer-files.ts";

const folder = process.argv[2] ?? "packages/cli/assets/micro-world";
mkdirSync(folder, { recursive: true });
const files = {
  ...tokenizerFiles(),
  "questions.jsonl": jsonl(questions()),
  "coupling.jsonl": jsonl(coupling()),
  "em.jsonl": jsonl(badAdvice()),
  "control.jsonl": jsonl(goodAdvice()),
  "personas.json": json(personaFile()),
  "leakage.json": json(leakageQuestions()),
  "alignment.json": json(alignmentQuestions()),
  "sentences.json": json(sentences()),
};
for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
console.log(`wrote ${Object.keys(files).join(", ")} to ${folder}`);
