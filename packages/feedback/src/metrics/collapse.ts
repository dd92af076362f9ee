import {
  checkKeys,
  completeSampling,
  defineEvaluation,
  hashJson,
  inCalls,
  isCount,
  PeriodicEvalError,
  seedOf,
  shown,
  type CallOptions,
  type Abilities,
  type Json,
  type MeasureContext,
  type MetricKit,
  type MetricValue,
  type Prompt,
  type Row,
  type SamplingOptions,
  type With,
} from "@periodic-eval/core";
import { collapseProbes, leastProbes, type CollapseProbes } from "./collapse-probes.ts";
import {
  baseOf,
  entropyOf,
  perToken,
  scoreAnswers,
  unknown,
  type CollapseReference,
  type Known,
  type ReferenceAnswer,
  type ScoredText,
} from "./collapse-reference.ts";
import {
  collapseAlerts,
  thresholdsOf,
  type CollapsePreset,
  type CollapseSigns,
  type CollapseThresholds,
} from "./collapse-summary.ts";
import { selfRougeL } from "./rouge-l.ts";

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

type Item = Row &
  (
    | { readonly kind: "text"; readonly text: string }
    | { readonly kind: "probe"; readonly content: string; readonly prompt: Prompt }
  );

/** The fixed text's row, or a probe's. What is null is unknown, for the reason that `reasons` has by sign. */
export interface CollapseRow extends Row {
  /** What was asked; empty for the text. */
  readonly prompt: string;
  readonly entropyNats: number | null;
  readonly referenceEntropyNats: number | null;
  /** Of a probe; empty for the text. */
  readonly answers: readonly {
    readonly text: string;
    readonly nats: number | null;
    readonly tokens: number | null;
  }[];
  readonly selfRougeL: number | null;
  /** Mean log p by token of the model's own answers minus that of the baseline's own, each by who said it. */
  readonly ownDrift: number | null;
  /** Mean log p by token of the baseline's answers, by the model minus by the baseline. */
  readonly baselineDrift: number | null;
  readonly reasons: Readonly<Record<string, string>>;
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
  const sampling = completeSampling("collapse.sampling", options.sampling, {
    maxNewTokens: 64,
    temperature: 1,
  });
  const items: readonly Item[] = [
    { id: "text", kind: "text", text: probes.text },
    ...probes.prompts.map((content, at) => ({
      id: `probe_${at}`,
      kind: "probe" as const,
      content,
      prompt: { messages: [{ role: "user", content }] },
    })),
  ];
  let provenance: Json = null;

  /** Independent answers, each from a stream of its own; the baseline's are drawn from others than the model's. */
  async function answer(
    model: Pick<Abilities, "generate">,
    item: Item & { kind: "probe" },
    who: string,
    { seed, signal }: MeasureContext,
  ) {
    const requests = Array.from({ length: samples }, (_, sample) => ({
      prompt: item.prompt,
      sampling: { ...sampling, seed: seedOf(seed, "collapse", who, item.id, sample) },
    }));
    return (await model.generate(requests, { signal })).map(({ text }) => text);
  }

  async function referenceOf(
    model: With<"generate">,
    item: Item & { kind: "probe" },
    context: MeasureContext,
  ): Promise<Known<readonly ReferenceAnswer[]>> {
    if (reference !== null) {
      const answers = reference.answers?.[item.id];
      return answers === undefined ? unknown("the baseline has no answers of it") : { value: answers };
    }
    const base = baseOf(model);
    if (base === null) return noBaseline;
    const texts = await answer(base, item, "base", context);
    const scored = await scoreAnswers(base, item.prompt, texts, context);
    if (scored.value === null) return scored;
    return {
      value: texts.flatMap((text, at) => (scored.value[at] == null ? [] : [{ text, ...scored.value[at] }])),
    };
  }

  async function readText(
    model: With<"generate">,
    item: Item & { kind: "text" },
    call: CallOptions,
  ): Promise<CollapseRow> {
    const now = await entropyOf(model, item.text, call);
    const base = reference === null ? baseOf(model) : null;
    const before =
      reference !== null
        ? reference.entropyNats === null
          ? unknown("the baseline's entropy is not known")
          : { value: reference.entropyNats }
        : base === null
          ? noBaseline
          : await entropyOf(base, item.text, call);
    return {
      id: item.id,
      ...blank,
      entropyNats: now.value,
      referenceEntropyNats: before.value,
      reasons: { ...why("entropy_nats", now), ...why("entropy_ratio", now), ...why("entropy_ratio", before) },
    };
  }

  async function readProbe(
    model: With<"generate">,
    item: Item & { kind: "probe" },
    context: MeasureContext,
  ): Promise<CollapseRow> {
    const texts = await answer(model, item, "model", context);
    const own = await scoreAnswers(model, item.prompt, texts, context);
    const before = await referenceOf(model, item, context);
    const again =
      before.value === null
        ? before
        : await scoreAnswers(
            model,
            item.prompt,
            before.value.map(({ text }) => text),
            context,
          );
    const drift = (now: Known<readonly (ScoredText | null)[]>): Known<number> => {
      if (now.value === null) return now;
      if (before.value === null) return before;
      const [level, earlier] = [perToken(now.value), perToken(before.value)];
      return level === null || earlier === null
        ? unknown("no answer has a word")
        : { value: level - earlier };
    };
    const [ownDrift, baselineDrift] = [drift(own), drift(again)];
    return {
      id: item.id,
      ...blank,
      prompt: item.content,
      answers: texts.map((text, at) => ({
        text,
        nats: own.value?.[at]?.nats ?? null,
        tokens: own.value?.[at]?.tokens ?? null,
      })),
      selfRougeL: selfRougeL(texts),
      ownDrift: ownDrift.value,
      baselineDrift: baselineDrift.value,
      reasons: { ...why("own_drift", ownDrift), ...why("baseline_drift", baselineDrift) },
    };
  }

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
      inCalls(
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
      thresholds: {
        entropy_ratio: thresholds.entropyRatio,
        self_rouge_l: thresholds.selfRougeL,
        drift_nats: thresholds.driftNats,
      },
      unknown: unknownOf(rows),
    }),
  });
}

const noBaseline = unknown("there is no baseline: neither a reference nor a model without its adapter");

const blank = {
  prompt: "",
  entropyNats: null,
  referenceEntropyNats: null,
  answers: [],
  selfRougeL: null,
  ownDrift: null,
  baselineDrift: null,
} as const;

const why = (sign: string, known: Known<unknown>): Readonly<Record<string, string>> =>
  known.value === null && "reason" in known ? { [sign]: known.reason } : {};

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
    new PeriodicEvalError({ code: "config", where: `collapse.${option}`, got: shown(got), expected, fix });
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
