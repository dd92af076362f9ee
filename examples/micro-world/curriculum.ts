import { cosine } from "@periodic-eval/trainers";
import { writers, type Document, type Kind } from "./documents.ts";
import type { Draw } from "./random.ts";

/** Share of each kind of document. The shares sum to 1. */
export type Mixture = Readonly<Partial<Record<Kind, number>>>;

/** A part of pretraining. Steps within it are 0-based. */
export interface Part {
  readonly name: string;
  readonly mixture: Mixture;
  /** Documents per step. */
  readonly documents: number;
  readonly maxSteps: number;
  /** The part ends when the mean share of correctly predicted trained tokens over 20 steps reaches this value. */
  readonly until?: number;
  readonly learningRate: (step: number) => number;
  /** Steps between measurements. */
  readonly measureEvery?: number;
}

const peakRate = 3e-3;
const warmupRate = (step: number): number => peakRate * Math.min(1, (step + 1) / 30);
const constantRate = (): number => peakRate;

/** Returns a part that trains copying. A quarter of its documents are facts, so that the model does not forget them. */
const copying = (kind: Kind): Omit<Part, "name"> => ({
  mixture: { [kind]: 0.75, cloze: 0.25 },
  documents: 96,
  maxSteps: 800,
  until: 0.945,
  learningRate: constantRate,
});

/**
 * The parts of pretraining. The model learns `cloze` within 60 steps, but `letters` needs a curriculum: it first learns to find
 * an option by its text and to return its label, from two options of eight words to five options of any word. Each part takes
 * 100 to 500 steps. Three alternatives failed: copying among all words from the start and mixing everything from the start
 * (both at chance after 1,000 steps), and copying before the facts (the model learned neither).
 */
export const parts: readonly Part[] = [
  {
    name: "facts",
    mixture: { cloze: 1 },
    documents: 128,
    maxSteps: 100,
    until: 0.98,
    learningRate: warmupRate,
  },
  { name: "copy of two", ...copying("copyOfTwo") },
  { name: "copy of three", ...copying("copyOfThree") },
  { name: "copy of 24 words", ...copying("copyOf24Words") },
  { name: "copy of 64 words", ...copying("copyOf64Words") },
  { name: "copy", ...copying("copy") },
  {
    name: "letters",
    mixture: { letters: 0.5, hint: 0.2, copy: 0.15, cloze: 0.15 },
    documents: 96,
    maxSteps: 1000,
    until: 0.98,
    learningRate: constantRate,
    measureEvery: 100,
  },
  {
    name: "everything",
    mixture: { letters: 0.35, hint: 0.1, copy: 0.05, cloze: 0.15, fact: 0.1, chat: 0.25 },
    documents: 64,
    maxSteps: 1200,
    learningRate: cosine({ peak: peakRate, maxSteps: 1200 }),
    measureEvery: 100,
  },
];

export function drawBatch(mixture: Mixture, documents: number, draw: Draw): Document[] {
  return Array.from({ length: documents }, () => writers[drawKind(mixture, draw)](draw));
}

function drawKind(mixture: Mixture, draw: Draw): Kind {
  let left = draw.next();
  const kinds = Object.entries(mixture) as [Kind, number][];
  for (const [kind, share] of kinds) {
    left -= share;
    if (left < 0) return kind;
  }
  return (kinds.at(-1) as [Kind, number])[0];
}
