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
const steady = (): number => peak;

/**
 * `cloze` comes by itself; `letters` does not. What it needs, looking up an option by what it says, is learnt first and
 * alone: lists, then copying an option's letter, then everything. Mixed with everything from the start, or begun with
 * copying, it stayed at chance for as long as was tried.
 */
export const parts: readonly Part[] = [
  { name: "short lists", mixture: { shortList: 1 }, documents: 64, maxSteps: 150, learningRate: rising },
  { name: "copy", mixture: { list: 0.4, copy: 0.6 }, documents: 64, maxSteps: 800, until: 0.97, learningRate: steady },
  {
    name: "everything",
    mixture: { letters: 0.4, hint: 0.12, copy: 0.08, cloze: 0.18, fact: 0.08, chat: 0.14 },
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
