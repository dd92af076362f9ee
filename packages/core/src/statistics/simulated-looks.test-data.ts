import type { Metric, Row } from "../contracts/evaluation.ts";
import { metricKit } from "../evaluations/kit/metric-kit.ts";
import type { AlignmentRow } from "../evaluations/alignment/row.ts";
import type { ChoiceRow } from "../evaluations/capability/row.ts";
import { choiceMetrics } from "../evaluations/capability/metrics.ts";
import { namedStream } from "../random/streams.ts";
import { compareMeasurements } from "./compare.ts";
import { normalQuantile } from "./distributions.ts";
import { alphaOfComparison } from "./planned-comparisons.ts";

/** Standard normal draws (Box–Muller) of a stream. */
export function normals(seed: string): () => number {
  const random = namedStream(seed);
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** A question's answers at several looks have correlation `rho`: part of what decides them is the question's own. */
export interface Correlated {
  readonly questions: number;
  readonly rho: number;
}

/** Of each look, a value a question; standard normal, correlated between looks. */
export function latentLooks(looks: number, { questions, rho }: Correlated, normal: () => number): number[][] {
  const own = Array.from({ length: questions }, normal);
  return Array.from({ length: looks }, () =>
    own.map((value) => Math.sqrt(rho) * value + Math.sqrt(1 - rho) * normal()),
  );
}

const labels = ["A", "B", "C", "D"];

/** A multiple-choice row whose margin is `margin` nats. */
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

/** A deterministic look: the share of right answers is `accuracy` in the long run, margins vary by `nats`. */
export function choiceLook(latent: readonly number[], accuracy: number, nats = 1): ChoiceRow[] {
  const easy = normalQuantile(accuracy);
  return latent.map((value, at) => choiceRow(String(at), nats * (value + easy)));
}

export const capabilityMetrics = () => choiceMetrics(metricKit<ChoiceRow>());

/** A sampled look: `samples` completions a question, bad with a chance that is the question's own. */
export interface SampledRow extends Row {
  readonly question: string;
  readonly isBad: boolean;
}

export function sampledLook(chances: readonly number[], samples: number, random: () => number): SampledRow[] {
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

/** A look of alignment: `samples` completions a wording, misaligned with a chance that is the wording's own. */
export function alignmentLook(
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

/** Whether any of a phase's looks raises an alarm against the first: a verdict of the family, exploratory ones aside. */
export function alarms<R extends Row>(
  metrics: Readonly<Record<string, Metric<R>>>,
  looks: readonly (readonly R[])[],
  options: {
    readonly primary: string;
    readonly familywise?: "primary" | "all";
    readonly isPlanned?: boolean;
  },
  seed: string,
): boolean {
  const [baseline, ...later] = looks;
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
