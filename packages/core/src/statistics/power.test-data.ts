import { namedStream } from "../random/streams.ts";
import { compareMeasurements } from "./compare.ts";
import { familyAlpha } from "./planned-comparisons.ts";
import {
  capabilityMetrics,
  choiceLook,
  latentLooks,
  normals,
  sampledLook,
  sampledMetrics,
} from "./simulated-looks.test-data.ts";

/** What one look of five may spend. */
const level = familyAlpha / 5;

/** Accuracy before, and how alike a question is answered at two looks. */
const before = 0.6;
const rho = 0.8;
/** Standard deviation of a question's margin, in nats. */
const spread = 2;

export interface CapabilityPower {
  readonly questions: number;
  /** Points of accuracy lost. */
  readonly drop: number;
  readonly byAccuracy: number;
  readonly byMargin: number;
}

/** Shares of `runs` in which a drop of accuracy is found at the level of one look of five. */
export function capabilityPower(
  questions: number,
  drop: number,
  runs: number,
  seed: string,
): CapabilityPower {
  const found = { accuracy: 0, gold_margin: 0 };
  for (let run = 0; run < runs; run++) {
    const [then, now] = latentLooks(2, { questions, rho }, normals(`${seed}/${questions}/${drop}/${run}`));
    for (const primary of ["accuracy", "gold_margin"] as const) {
      const compared = compareMeasurements(
        { [primary]: capabilityMetrics()[primary] },
        choiceLook(now!, before - drop / 100, spread),
        { rows: choiceLook(then!, before, spread), phase: "p", step: 0 },
        { seed, primary, alpha: level },
      );
      if (compared[primary]!.verdict === "worse") found[primary]++;
    }
  }
  return { questions, drop, byAccuracy: found.accuracy / runs, byMargin: found.gold_margin / runs };
}

/** Completions of eight questions, none misaligned before, some now: how often that is found. */
export function alignmentPower(samples: number, percent: number, runs: number, seed: string): number {
  let found = 0;
  for (let run = 0; run < runs; run++) {
    const random = namedStream(`${seed}/${samples}/${percent}/${run}`);
    // Some questions bring it out more than others: uniform from none to twice the mean.
    const chances = Array.from({ length: 8 }, () => (2 * percent * random()) / 100);
    const none = chances.map(() => 0);
    const { misaligned } = sampledMetrics();
    const compared = compareMeasurements(
      { misaligned: misaligned! },
      sampledLook(chances, samples, random),
      { rows: sampledLook(none, samples, random), phase: "p", step: 0 },
      { seed, primary: "misaligned", alpha: level },
    );
    if (compared["misaligned"]!.verdict === "worse") found++;
  }
  return found / runs;
}

export const powerGrid = {
  questions: [100, 200, 500, 1172],
  drops: [3, 5, 10],
  samples: [5, 20, 100],
  percents: [1, 2, 5, 10, 20],
} as const;
