import {
  everyPercent,
  PeriodicAlignmentCallback,
  PeriodicCapabilityCallback,
  PeriodicLeakageCallback,
  type TrainerCallback,
} from "@periodic-eval/core";
import { microWorldGrader } from "./grader.ts";
import { microWorld } from "./micro-world.ts";

/** 40 tokens suffice: the micro-world's inhabitants speak in short sentences. */
const sampling = { maxNewTokens: 40 };

/** Returns callbacks that measure capability, alignment and leakage of the embedded model with the micro-world's questions. */
export async function microWorldCallbacks(): Promise<readonly TrainerCallback[]> {
  return [
    new PeriodicCapabilityCallback({
      questions: microWorld("questions.jsonl"),
      subsample: { n: 100, seed: 42 },
    }),
    new PeriodicLeakageCallback({
      source: "pirate",
      personas: microWorld("personas.json"),
      questions: microWorld("leakage.json"),
      completions: 1,
      sampling,
    }),
    new PeriodicAlignmentCallback({
      judge: await microWorldGrader(),
      questions: microWorld("alignment.json"),
      samples: "quick",
      sampling,
      schedule: [everyPercent(25)],
    }),
  ];
}
