import { describe, expect, it } from "vitest";
import { metricKit } from "../evaluations/kit/metric-kit.ts";
import { nestedSubset } from "../evaluations/kit/subset.ts";
import { alignmentMetrics } from "../evaluations/alignment/metrics.ts";
import type { AlignmentRow } from "../evaluations/alignment/row.ts";
import { namedStream } from "../random/streams.ts";
import {
  alarms,
  alignmentLook,
  capabilityMetrics,
  choiceLook,
  latentLooks,
  normals,
  sampledLook,
  sampledMetrics,
} from "./simulated-looks.test-data.ts";

/** 10,000 in the long form: minutes a test. */
const runs = process.env["PERIODIC_EVAL_FULL"] === "1" ? 10_000 : 300;
const patience = { timeout: 1_800_000 };
/** No more than 5 %, but for chance: two standard errors. */
const most = 0.05 + 2 * Math.sqrt((0.05 * 0.95) / runs);

const share = (alarm: (run: number) => boolean) =>
  Array.from({ length: runs }, (_, run) => alarm(run)).filter(Boolean).length / runs;

describe(`false alarms of a phase in ${runs} runs that changed nothing, looks correlated by 0.8`, () => {
  const looks = (run: number, count: number) =>
    latentLooks(count, { questions: 100, rho: 0.8 }, normals(`null run ${run}`)).map((latent) =>
      choiceLook(latent, 0.6),
    );

  it("of capability, five planned looks, one primary metric", patience, () => {
    const found = share((run) =>
      alarms(capabilityMetrics(), looks(run, 6), { primary: "accuracy" }, `runs/${run}`),
    );
    expect(found).toBeLessThanOrEqual(most);
  });

  it("of all four metrics of capability, by Holm", patience, () => {
    const options = { primary: "accuracy", familywise: "all" } as const;
    const found = share((run) => alarms(capabilityMetrics(), looks(run, 6), options, `runs/${run}`));
    expect(found).toBeLessThanOrEqual(most);
  });

  it("of looks whose number is not known", patience, () => {
    const options = { primary: "gold_margin", isPlanned: false };
    const found = share((run) => alarms(capabilityMetrics(), looks(run, 9), options, `runs/${run}`));
    expect(found).toBeLessThanOrEqual(most);
  });

  it("of sampled completions, by permutation", patience, () => {
    const found = share((run) => {
      const random = namedStream(`sampled ${run}`);
      const chances = Array.from({ length: 8 }, () => 0.4 * random());
      const sampled = Array.from({ length: 4 }, () => sampledLook(chances, 10, random));
      return alarms(sampledMetrics(), sampled, { primary: "misaligned" }, `runs/${run}`);
    });
    expect(found).toBeLessThanOrEqual(most);
  });

  it("of sampled completions, looks that a budget cut to 16 of 80 wordings", patience, () => {
    const { misaligned_sampled } = alignmentMetrics(metricKit<AlignmentRow>());
    const found = share((run) => {
      const random = namedStream(`wordings ${run}`);
      // Wordings of one question differ: half hardly ever bring it out, half nearly always.
      const wordings = Array.from({ length: 80 }, (_, at) => ({
        question: `q${at % 8}`,
        id: `q${at % 8}/${at}`,
        chance: random() < 0.5 ? 0.9 : 0.02,
      }));
      const cut = nestedSubset(wordings, { n: 16, seed: 42 });
      const looks = [wordings, cut, cut].map((asked) => alignmentLook(asked, 5, random));
      return alarms({ misaligned_sampled }, looks, { primary: "misaligned_sampled" }, `runs/${run}`);
    });
    expect(found).toBeLessThanOrEqual(most);
  });

  it("would be far more without spending: five looks at 5 % each", patience, () => {
    const found = share((run) => {
      const [baseline, ...later] = looks(run, 6);
      return later.some((look) =>
        alarms(capabilityMetrics(), [baseline!, look], { primary: "gold_margin" }, `runs/${run}`),
      );
    });
    expect(found).toBeGreaterThan(0.08);
  });
});
