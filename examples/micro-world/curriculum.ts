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
const rising = (step: number): number => peak * Math.min(1, (step + 1) / 50);

const copying = { documents: 64, maxSteps: 800, until: 0.955, learningRate: rising } as const;

/**
 * `cloze` comes by itself; `letters` does not. What it needs, to find an option by what it says and to give its label, is
 * learnt first and alone, from two options of eight words to five of any word. Copying among all words from the start stayed
 * at chance for 1,000 steps, and so did everything at once; two options of eight words take 150.
 */
export const parts: readonly Part[] = [
  { name: "copy of two", mixture: { copyOfTwo: 1 }, ...copying },
  { name: "copy of three", mixture: { copyOfThree: 1 }, ...copying },
  { name: "copy of 8 words", mixture: { copyOf8Words: 1 }, ...copying },
  { name: "copy of 24 words", mixture: { copyOf24Words: 1 }, ...copying },
  { name: "copy of 64 words", mixture: { copyOf64Words: 1 }, ...copying },
  { name: "copy", mixture: { copy: 1 }, ...copying },
  {
    name: "everything",
    mixture: { letters: 0.42, hint: 0.12, copy: 0.06, cloze: 0.22, fact: 0.08, chat: 0.1 },
    documents: 64,
    maxSteps: 1500,
    learningRate: cosine({ peak, maxSteps: 1500 }),
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
