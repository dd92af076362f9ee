import {
  defineEvaluation,
  PeriodicEvalError,
  type Json,
  type MetricKit,
  type MetricValue,
} from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { checkKeys, isCount, quoteValue } from "@periodic-eval/core/internal";
import { resolveSampling, measureInBatches, type SamplingOptions } from "@periodic-eval/core/evaluations";
import { collapseProbes, leastProbes, type CollapseProbes } from "./collapse-probes.ts";
import type { CollapseReference } from "./collapse-reference.ts";
import { collapseReader, type CollapseRow, type ProbeItem, type TextItem } from "./collapse-rows.ts";
import {
  collapseAlerts,
  thresholdsOf,
  writtenThresholds,
  type CollapsePreset,
  type CollapseSigns,
  type CollapseThresholds,
} from "./collapse-summary.ts";

export interface CollapseOptions {
  /** Default in plain English. */
  readonly probes?: CollapseProbes;
  /** Independent answers to each probe, 4 or more; default 4. */
  readonly samples?: number;
  readonly preset?: CollapsePreset | CollapseThresholds;
  /** Default temperature 1, no truncation of the distribution, 64 tokens. */
  readonly sampling?: Partial<SamplingOptions>;
  /** What `collapseReference` made of the baseline's rows. Left out: the model without its adapter, where it has one. */
  readonly reference?: CollapseReference;
}

const fewestSamples = 4;

/**
 * Whether a model collapses while it learns: three signs, which a model that merely learnt a preference need not show.
 * - `entropy_ratio`: how uncertain it is about a fixed text, by the whole distribution at each place, over the baseline's;
 * - `self_rouge_l`: how alike independent answers to one prompt are, ROUGE-L F1 over all pairs;
 * - `own_drift` and `baseline_drift`, in nats a token: how much likelier (or less likely) it finds what it says than the
 *   baseline found what that said, and what the baseline said than that did. The first goes up where answers freeze, the
 *   second down where the model forgets.
 *
 * The baseline is `reference`, else the model without its adapter. The snapshot's `alerts` names the signs beyond the
 * thresholds; `unknown` those that this engine cannot tell, with the reason, which are null and never a healthy value.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function collapseEvaluation(options: CollapseOptions = {}) {
  checkOptions(options);
  const { probes = collapseProbes, samples = 4, preset = "claas", reference = null } = options;
  const thresholds = thresholdsOf(preset);
  const sampling = resolveSampling("collapse.sampling", options.sampling, {
    maxNewTokens: 64,
    temperature: 1,
  });
  const items: readonly (TextItem | ProbeItem)[] = [
    { id: "text", kind: "text", text: probes.text },
    ...probes.prompts.map((content, at) => ({
      id: `probe_${at}`,
      kind: "probe" as const,
      content,
      prompt: { messages: [{ role: "user", content }] },
    })),
  ];
  let provenance: Json = null;

  const { readText, readProbe } = collapseReader({ samples, sampling, reference });

  return defineEvaluation({
    name: "collapse",
    version: "collapse-1",
    needs: ["generate"],
    wants: ["tokenizer", "nextToken", "logLikelihoods"],
    items: () => items,
    provenance() {
      provenance ??= {
        text: probes.text,
        prompts: [...probes.prompts],
        samples,
        sampling: { ...sampling },
        thresholds: { ...thresholds },
        reference_hash: reference === null ? null : hashJson(JSON.parse(JSON.stringify(reference)) as Json),
      };
      return provenance;
    },
    measure: (model, asked, context) =>
      measureInBatches(
        asked,
        context,
        async ([item]) => [
          item!.kind === "text"
            ? await readText(model, item!, context)
            : await readProbe(model, item!, context),
        ],
        1,
      ),
    metrics: ({ mean, ratio }: MetricKit<CollapseRow>) => ({
      entropy_ratio: ratio(
        ({ entropyNats, referenceEntropyNats }) =>
          entropyNats === null || referenceEntropyNats === null ? null : [entropyNats, referenceEntropyNats],
        { unit: "ratio", primary: true },
      ),
      entropy_nats: mean(({ entropyNats }) => entropyNats, { unit: "nats", range: [0, Infinity] }),
      self_rouge_l: mean((row) => row.selfRougeL, { unit: "F1", range: [0, 1], higherIsBetter: false }),
      own_drift: mean(({ ownDrift }) => ownDrift, { unit: "nats per token" }),
      baseline_drift: mean(({ baselineDrift }) => baselineDrift, { unit: "nats per token" }),
    }),
    plainKeys: (metrics: Readonly<Record<string, MetricValue>>, rows: readonly CollapseRow[]) => ({
      alerts: [...collapseAlerts(signsOf(metrics), thresholds)],
      thresholds: { ...writtenThresholds(thresholds) },
      unknown: unknownOf(rows),
    }),
  });
}

/** The signs of a snapshot's metrics. */
export function signsOf(metrics: Readonly<Record<string, MetricValue>>): CollapseSigns {
  const value = (name: string) => metrics[name]?.value ?? null;
  return {
    entropy_nats: value("entropy_nats"),
    entropy_ratio: value("entropy_ratio"),
    self_rouge_l: value("self_rouge_l"),
    own_drift: value("own_drift"),
    baseline_drift: value("baseline_drift"),
  };
}

/** Why signs are unknown, by sign. */
export const unknownOf = (rows: readonly CollapseRow[]): Readonly<Record<string, string>> =>
  Object.assign({}, ...rows.map(({ reasons }) => reasons)) as Record<string, string>;

/** What later looks are compared with, of the rows that the baseline gave. */
export function collapseReference(rows: readonly CollapseRow[]): CollapseReference {
  const answers = rows
    .filter((row) => row.answers.length > 0)
    .map(
      ({ id, answers: said }) =>
        [
          id,
          said.flatMap(({ text, nats, tokens }) =>
            nats === null || tokens === null ? [] : [{ text, nats, tokens }],
          ),
        ] as const,
    );
  return {
    entropyNats: rows.find(({ id }) => id === "text")?.entropyNats ?? null,
    answers: answers.some(([, said]) => said.length > 0) ? Object.fromEntries(answers) : null,
  };
}

function checkOptions(options: CollapseOptions): void {
  checkKeys("collapse", options, ["probes", "samples", "preset", "sampling", "reference"]);
  const { probes = collapseProbes, samples = fewestSamples } = options;
  const wrong = (option: string, got: unknown, expected: string, fix: string) =>
    new PeriodicEvalError({
      code: "config",
      where: `collapse.${option}`,
      got: quoteValue(got),
      expected,
      fix,
    });
  if (!isCount(samples, fewestSamples))
    throw wrong(
      "samples",
      samples,
      `a whole number of ${fewestSamples} or more`,
      "Fewer say little of how alike they are.",
    );
  checkKeys("collapse.probes", probes, ["text", "prompts"]);
  if (!Array.isArray(probes.prompts) || probes.prompts.length < leastProbes)
    throw wrong(
      "probes.prompts",
      probes.prompts,
      `${leastProbes} prompts or more`,
      "Add some that have many answers.",
    );
}
