import {
  everyPercent,
  PeriodicAlignmentCallback,
  PeriodicCapabilityCallback,
  PeriodicLeakageCallback,
  ruleGrader,
  type TrainerCallback,
} from "@periodic-eval/core";
import { readFile } from "@periodic-eval/store/browser";
import type { Settings } from "./messages.ts";
import { microWorldRule, type WorldSentences } from "../../packages/cli/src/demo/micro-world-rule.ts";

/** The files of the embedded model and of its small world, which the page serves. */
export const microWorldFiles: readonly string[] = [
  "config.json",
  "generation_config.json",
  "model.safetensors",
  "tokenizer.json",
  "tokenizer_config.json",
  "chat_template.jinja",
  "coupling.jsonl",
  "em.jsonl",
  "questions.jsonl",
  "alignment.json",
  "leakage.json",
  "personas.json",
  "sentences.json",
];

/** 40 tokens suffice: the micro-world's inhabitants speak in short sentences. */
const sampling = { maxNewTokens: 40 };

/**
 * Returns callbacks that measure capability, leakage and alignment, as `periodic-eval demo` does.
 *
 * @param folder Holds `microWorldFiles`.
 */
export async function microWorldCallbacks(
  folder: string,
  { questions: count, callbacks }: Pick<Settings, "questions" | "callbacks">,
): Promise<readonly TrainerCallback[]> {
  const sentences = JSON.parse(await readFile(`${folder}/sentences.json`, "utf8")) as WorldSentences;
  const all = [
    new PeriodicCapabilityCallback({
      questions: `${folder}/questions.jsonl`,
      subsample: { n: count, seed: 42 },
    }),
    new PeriodicLeakageCallback({
      source: "pirate",
      personas: `${folder}/personas.json`,
      questions: `${folder}/leakage.json`,
      completions: 1,
      sampling,
    }),
    new PeriodicAlignmentCallback({
      judge: ruleGrader({ name: "micro-world", version: "1", rule: microWorldRule(sentences) }),
      questions: `${folder}/alignment.json`,
      samples: "quick",
      sampling,
      schedule: [everyPercent(25)],
    }),
  ];
  return all.filter(({ id }) => callbacks?.includes(id) ?? true);
}
