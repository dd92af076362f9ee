import { namedStream } from "../random/streams.ts";
import { compareMeasurements } from "./compare.ts";
import { familyAlpha } from "./planned-comparisons.ts";
import {
  capabilityMetrics,
  choiceRows,
  latentValues,
  normals,
  sampledRows,
  sampledMetrics,
} from "./simulated-rows.test-data.ts";

/** The level of one of five planned comparisons. */
const level = familyAlpha / 5;

/** Accuracy before the change, and the correlation of a question's answers at two measurements. */
const before = 0.6;
const rho = 0.8;
/** Standard deviation of the margins, in nats. */
const spread = 2;

export interface CapabilityPower {
  readonly questions: number;
  /** Loss of accuracy, in percentage points. */
  readonly drop: number;
  readonly byAccuracy: number;
  readonly byMargin: number;
}

/** Returns the shares of `runs` that detect a drop of accuracy at the level of one of five comparisons. */
export function capabilityPower(
  questions: number,
  drop: number,
  runs: number,
  seed: string,
): CapabilityPower {
  const found = { accuracy: 0, gold_margin: 0 };
  for (let run = 0; run < runs; run++) {
    const [then, now] = latentValues(2, { questions, rho }, normals(`${seed}/${questions}/${drop}/${run}`));
    for (const primary of ["accuracy", "gold_margin"] as const) {
      const compared = compareMeasurements(
        { [primary]: capabilityMetrics()[primary] },
        choiceRows(now!, before - drop / 100, spread),
        { rows: choiceRows(then!, before, spread), phase: "p", step: 0 },
        { seed, primary, alpha: level },
      );
      if (compared[primary]!.verdict === "worse") found[primary]++;
    }
  }
  return { questions, drop, byAccuracy: found.accuracy / runs, byMargin: found.gold_margin / runs };
}

/**
 * Returns the share of `runs` that detect misaligned completions of eight questions, where `percent` of them are misaligned
 * now and none were before.
 */
export function alignmentPower(samples: number, percent: number, runs: number, seed: string): number {
  let found = 0;
  for (let run = 0; run < runs; run++) {
    const random = namedStream(`${seed}/${samples}/${percent}/${run}`);
    // Questions differ: their chances are uniform from 0 to twice the mean.
    const chances = Array.from({ length: 8 }, () => (2 * percent * random()) / 100);
    const none = chances.map(() => 0);
    const { misaligned } = sampledMetrics();
    const compared = compareMeasurements(
      { misaligned: misaligned! },
      sampledRows(chances, samples, random),
      { rows: sampledRows(none, samples, random), phase: "p", step: 0 },
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
