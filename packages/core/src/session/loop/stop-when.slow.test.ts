import { describe, expect, it } from "vitest";
import type { StopCondition } from "@periodic-eval/contracts";
import { nestedSubset } from "../../evaluations/kit/subset.ts";
import { namedStream } from "../../random/streams.ts";
import {
  capabilityMetrics,
  choiceRows,
  latentValues,
  normals,
  sampledMetrics,
  sampledRows,
} from "../../statistics/simulated-rows.test-data.ts";
import { measurementOfStop, type SimulatedEvaluation } from "./stop-when.test-data.ts";

const evenAtStart = (when: string): StopCondition => ({ when, evenAtStart: true });
const patience = { timeout: 3_600_000 };
const runs = Number(process.env["RUNS"] ?? 1_000);
/** Measurements after the start: every 5 % of a phase. */
const measurements = 20;

/** Accuracy of `questions` questions whose answers at two measurements correlate by 0.8. */
function capability(
  questions: number,
  accuracyAt: (step: number) => number,
  seed: string,
): SimulatedEvaluation {
  const latent = latentValues(measurements + 1, { questions, rho: 0.8 }, normals(seed));
  const { accuracy } = capabilityMetrics();
  return {
    metrics: { accuracy } as never,
    measurements: latent.map((values, step) => choiceRows(values, accuracyAt(step))),
  };
}

/** Answers to eight questions, each misaligned with its question's chance. */
function alignment(answers: number, shareAt: (step: number) => number, seed: string): SimulatedEvaluation {
  const random = namedStream(seed);
  const { misaligned } = sampledMetrics();
  const weights = nestedSubset([0.5, 0.6, 0.8, 1, 1, 1.2, 1.4, 1.5], { n: null, seed: 1 });
  const chances = (share: number) => weights.map((weight) => Math.min(1, weight * share));
  return {
    metrics: { misaligned } as never,
    measurements: Array.from({ length: measurements + 1 }, (_, step) =>
      sampledRows(chances(shareAt(step)), answers / 8, random),
    ),
  };
}

async function shareOf(count: number, isHit: (run: number) => Promise<boolean>): Promise<number> {
  let hits = 0;
  for (let run = 0; run < count; run++) if (await isHit(run)) hits += 1;
  return hits / count;
}

/** Upper end of the 95 % Wilson interval. */
function upperLimit(share: number, n: number): number {
  const z = 1.96;
  const middle = share + (z * z) / (2 * n);
  return (middle + z * Math.sqrt((share * (1 - share)) / n + (z * z) / (4 * n * n))) / (1 + (z * z) / n);
}

describe(`conditions that stop, in ${runs} runs without harm`, () => {
  it.each<[string, readonly StopCondition[]]>([
    ["a verdict on capability", ["capability worse"]],
    ["two verdicts and a limit", ["capability worse", "alignment worse", "alignment.misaligned > 10 %"]],
    ["limits at the true value", ["capability.accuracy < 60 %", "alignment.misaligned > 5 %"]],
    ["a limit at the true value that may hold at the start", [evenAtStart("alignment.misaligned > 30 %")]],
  ])("stop at most 5.5 % of them: %s", patience, async (name, conditions) => {
    const stopped = await shareOf(runs, async (run) => {
      const evaluations = {
        capability: capability(100, () => 0.6, `${name} ${run}`),
        ...((conditions.length > 1 || name.includes("start")) && {
          alignment: alignment(40, () => (name.includes("start") ? 0.3 : 0.05), `${name} ${run} alignment`),
        }),
      };
      const stop = measurementOfStop(evaluations, conditions, String(run));
      // A limit that the start is beyond by chance is an error before step 1, not a stop.
      const isAtStart = (error: unknown) => String(error).includes("holds before step 1");
      return stop.then(
        (at) => at !== null,
        (error: unknown) => {
          if (isAtStart(error)) return false;
          throw error;
        },
      );
    });
    expect(upperLimit(stopped, runs)).toBeLessThanOrEqual(0.055);
  });
});

describe("a planted change of 20 points at the tenth of twenty measurements", () => {
  const changed = 10;
  const powerRuns = Math.min(runs, 400);
  const cases = [40, 100, 200].flatMap((n) => [
    ["capability", n, n >= 100 ? 0.9 : 0.22] as const,
    ["alignment", n, n >= 100 ? 0.9 : 0.4] as const,
  ]);
  it.each(cases)(
    "%s with %i answers stops at the first or second measurement after it",
    patience,
    async (kind, n, least) => {
      const found = await shareOf(powerRuns, async (run) => {
        const evaluation =
          kind === "capability"
            ? capability(n, (step) => (step >= changed ? 0.4 : 0.6), `power ${n} ${run}`)
            : alignment(n, (step) => (step >= changed ? 0.22 : 0.02), `power ${n} ${run}`);
        const step = await measurementOfStop({ [kind]: evaluation }, [`${kind} worse`], `${run}`);
        return step === changed || step === changed + 1;
      });
      expect(found).toBeGreaterThanOrEqual(least);
    },
  );
});
