import { describe, expect, it } from "vitest";
import { alignmentMetrics, type AlignmentRow } from "../evaluations/alignment/metrics.ts";
import { metricKit } from "../evaluations/kit/metric-kit.ts";
import { nestedSubset } from "../evaluations/kit/subset.ts";
import { namedStream } from "../random/streams.ts";
import {
  alarms,
  alignmentRows,
  capabilityMetrics,
  choiceRows,
  latentValues,
  normals,
  sampledMetrics,
  sampledRows,
} from "./simulated-rows.test-data.ts";

const patience = { timeout: 1_800_000 };

/** Declares the tests of the share of false alarms, in so many simulated runs. */
export function testFalseAlarms(runs: number): void {
  /** At most 5 %, plus two standard errors of the simulation. */
  const most = 0.05 + 2 * Math.sqrt((0.05 * 0.95) / runs);

  const share = (alarm: (run: number) => boolean) =>
    Array.from({ length: runs }, (_, run) => alarm(run)).filter(Boolean).length / runs;

  describe(`false alarms per phase in ${runs} runs without a change, measurements correlated by 0.8`, () => {
    const measurements = (run: number, count: number) =>
      latentValues(count, { questions: 100, rho: 0.8 }, normals(`null run ${run}`)).map((latent) =>
        choiceRows(latent, 0.6),
      );

    it("stay at 5 % for capability, five planned comparisons and one primary metric", patience, () => {
      const found = share((run) =>
        alarms(capabilityMetrics(), measurements(run, 6), { primary: "accuracy" }, `runs/${run}`),
      );
      expect(found).toBeLessThanOrEqual(most);
    });

    it("stay at 5 % for all four metrics of capability, by Holm's method", patience, () => {
      const options = { primary: "accuracy", familywise: "all" } as const;
      const found = share((run) => alarms(capabilityMetrics(), measurements(run, 6), options, `runs/${run}`));
      expect(found).toBeLessThanOrEqual(most);
    });

    it("stay at 5 % for an unknown number of comparisons", patience, () => {
      const options = { primary: "gold_margin", isPlanned: false };
      const found = share((run) => alarms(capabilityMetrics(), measurements(run, 9), options, `runs/${run}`));
      expect(found).toBeLessThanOrEqual(most);
    });

    it("stay at 5 % for sampled completions, by permutation", patience, () => {
      const found = share((run) => {
        const random = namedStream(`sampled ${run}`);
        const chances = Array.from({ length: 8 }, () => 0.4 * random());
        const sampled = Array.from({ length: 4 }, () => sampledRows(chances, 10, random));
        return alarms(sampledMetrics(), sampled, { primary: "misaligned" }, `runs/${run}`);
      });
      expect(found).toBeLessThanOrEqual(most);
    });

    it("stay at 5 % for sampled completions when the budget cuts 80 wordings to 16", patience, () => {
      const { misaligned } = alignmentMetrics(metricKit<AlignmentRow>());
      const found = share((run) => {
        const random = namedStream(`wordings ${run}`);
        // Wordings of one question differ: half of them are misaligned rarely, half nearly always.
        const wordings = Array.from({ length: 80 }, (_, at) => ({
          question: `q${at % 8}`,
          id: `q${at % 8}/${at}`,
          chance: random() < 0.5 ? 0.9 : 0.02,
        }));
        const cut = nestedSubset(wordings, { n: 16, seed: 42 });
        const sampled = [wordings, cut, cut].map((used) => alignmentRows(used, 5, random));
        return alarms({ misaligned }, sampled, { primary: "misaligned" }, `runs/${run}`);
      });
      expect(found).toBeLessThanOrEqual(most);
    });

    it("exceed 8 % without planning, with five comparisons at 5 % each", patience, () => {
      const found = share((run) => {
        const [baseline, ...later] = measurements(run, 6);
        return later.some((rows) =>
          alarms(capabilityMetrics(), [baseline!, rows], { primary: "gold_margin" }, `runs/${run}`),
        );
      });
      expect(found).toBeGreaterThan(0.08);
    });
  });
}
