import type { Metric, Row } from "@periodic-eval/contracts";
import type { AlignmentRow } from "../evaluations/alignment/metrics.ts";
import { choiceMetrics, type ChoiceRow } from "../evaluations/capability/metrics.ts";
import { metricKit } from "../evaluations/kit/metric-kit.ts";
import { namedStream } from "../random/streams.ts";
import { compareMeasurements } from "./compare.ts";
import { normalQuantile } from "./distributions.ts";
import { alphaOfComparison } from "./planned-comparisons.ts";

/** Returns a generator of standard normal numbers (Box–Muller) from a named stream. */
export function normals(seed: string): () => number {
  const random = namedStream(seed);
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** A question's answers at several measurements have the correlation `rho`, because they share a part that belongs to it. */
export interface Correlated {
  readonly questions: number;
  readonly rho: number;
}

/** Returns standard normal values [measurements, questions], correlated between measurements. */
export function latentValues(
  measurements: number,
  { questions, rho }: Correlated,
  normal: () => number,
): number[][] {
  const own = Array.from({ length: questions }, normal);
  return Array.from({ length: measurements }, () =>
    own.map((value) => Math.sqrt(rho) * value + Math.sqrt(1 - rho) * normal()),
  );
}

const labels = ["A", "B", "C", "D"];

/** Returns a multiple-choice row with a margin of `margin` nats. */
export function choiceRow(id: string, margin: number): ChoiceRow {
  const nats = [-1.5 + margin / 2, -1.5 - margin / 2, -6, -7];
  const correct = margin > 0;
  return {
    id,
    status: "scored",
    labels,
    gold: "A",
    predicted: correct ? "A" : "B",
    correct,
    nats,
    truncatedTokens: 0,
  };
}

/** Returns rows of a deterministic measurement with the expected accuracy `accuracy`. Margins have the deviation `nats`. */
export function choiceRows(latent: readonly number[], accuracy: number, nats = 1): ChoiceRow[] {
  const easy = normalQuantile(accuracy);
  return latent.map((value, at) => choiceRow(String(at), nats * (value + easy)));
}

export const capabilityMetrics = () => choiceMetrics(metricKit<ChoiceRow>());

/** A sampled completion. */
export interface SampledRow extends Row {
  readonly question: string;
  readonly isBad: boolean;
}

/** Returns rows of a sampled measurement: `samples` completions per question, each bad with its question's chance. */
export function sampledRows(chances: readonly number[], samples: number, random: () => number): SampledRow[] {
  return chances.flatMap((chance, question) =>
    Array.from({ length: samples }, (_, sample) => ({
      id: `${question}#${sample}`,
      question: String(question),
      isBad: random() < chance,
    })),
  );
}

export const sampledMetrics = (): Record<string, Metric<SampledRow>> => {
  const { rate } = metricKit<SampledRow>();
  return {
    misaligned: rate((row) => row.isBad, {
      higherIsBetter: false,
      primary: true,
      sampled: true,
      cluster: (row) => row.question,
      item: (row) => row.question,
    }),
    by_question: rate((row) => row.isBad, {
      sampled: true,
      cluster: (row) => row.question,
      item: (row) => row.question,
      by: (row) => row.question,
    }),
  };
};

/** Returns rows of an alignment measurement: `samples` completions per wording, each misaligned with its wording's chance. */
export function alignmentRows(
  wordings: readonly { readonly id: string; readonly question: string; readonly chance: number }[],
  samples: number,
  random: () => number,
): AlignmentRow[] {
  return wordings.flatMap(({ id, question, chance }) =>
    Array.from({ length: samples }, (_, sample) => ({
      id: `${id}#${sample}`,
      kind: "completion",
      item: id,
      questionId: question,
      question,
      persona: null,
      sample,
      judgePrompts: null,
      text: "",
      answer: "",
      finish: "stop",
      status: "graded",
      aligned: random() < chance ? 10 : 90,
      coherent: 80,
      raw: null,
      judgeModel: null,
      statuses: null,
      judgeSpent: null,
    })),
  );
}

/** Whether any later measurement differs from the first by a verdict of the family. Exploratory verdicts do not count. */
export function alarms<R extends Row>(
  metrics: Readonly<Record<string, Metric<R>>>,
  measurements: readonly (readonly R[])[],
  options: {
    readonly primary: string;
    readonly familywise?: "primary" | "all";
    readonly isPlanned?: boolean;
  },
  seed: string,
): boolean {
  const [baseline, ...later] = measurements;
  const spent: number[] = [];
  return later.some((rows, k) => {
    const alpha = alphaOfComparison({ spent, planned: options.isPlanned === false ? null : later.length });
    spent.push(alpha);
    const { primary, familywise = "primary" } = options;
    const compared = compareMeasurements(
      metrics,
      rows,
      { rows: baseline!, phase: "p", step: 0 },
      { seed: `${seed}/${k}`, primary, alpha, familywise },
    );
    return Object.values(compared).some(
      ({ exploratory, verdict }) => !exploratory && verdict !== null && verdict !== "no evidence",
    );
  });
}
