import { cosine } from "@periodic-eval/trainers";
import { writers, type Document, type Kind } from "./documents.ts";
import type { Draw } from "./random.ts";

/** Share of each kind of document. */
export type Mixture = Readonly<Partial<Record<Kind, number>>>;

/** A part of pretraining. Steps are counted from 0 within it. */
export interface Part {
  readonly name: string;
  readonly mixture: Mixture;
  /** Documents a step. */
  readonly documents: number;
  readonly maxSteps: number;
  /** The part ends when this share of the learnt tokens was right over 20 steps. */
  readonly until?: number;
  readonly learningRate: (step: number) => number;
  /** Steps between measurements. */
  readonly looks?: number;
}

const peak = 3e-3;
const rising = (step: number): number => peak * Math.min(1, (step + 1) / 30);
const level = (): number => peak;

/** A quarter stays with the facts, so that they are not forgotten meanwhile. */
const copying = (kind: Kind): Omit<Part, "name"> => ({
  mixture: { [kind]: 0.75, cloze: 0.25 },
  documents: 96,
  maxSteps: 800,
  until: 0.945,
  learningRate: level,
});

/**
 * `cloze` comes by itself, in 60 steps; `letters` does not. What it needs, to find an option by what it says and to give
 * its label, is learnt first and alone, from two options of eight words to five of any word: each part takes 100 to 500
 * steps. Copying among all words from the start stayed at chance for 1,000 steps, and so did everything at once; with the
 * facts left for last, neither came.
 */
export const parts: readonly Part[] = [
  { name: "facts", mixture: { cloze: 1 }, documents: 128, maxSteps: 100, until: 0.98, learningRate: rising },
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
    learningRate: level,
    looks: 100,
  },
  {
    name: "everything",
    mixture: { letters: 0.35, hint: 0.1, copy: 0.05, cloze: 0.15, fact: 0.1, chat: 0.25 },
    documents: 64,
    maxSteps: 1200,
    learningRate: cosine({ peak, maxSteps: 1200 }),
    looks: 100,
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
