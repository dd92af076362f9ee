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

const peak = 2e-3;

/**
 * Copying an option's letter is learnt first and alone: mixed with everything else from the start, `letters` stayed at
 * chance while `cloze` rose. The first part lasts until copying succeeds, the second for a fixed number of steps.
 */
export const parts: readonly Part[] = [
  {
    name: "copy",
    mixture: { copy: 1 },
    documents: 32,
    maxSteps: 1500,
    until: 0.97,
    learningRate: (step) => peak * Math.min(1, (step + 1) / 50),
  },
  {
    name: "everything",
    mixture: { letters: 0.4, hint: 0.12, copy: 0.08, cloze: 0.18, fact: 0.08, chat: 0.14 },
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
