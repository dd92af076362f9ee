import * as z from "zod";
import { isRecord, parseOptions, filledString, configError } from "@periodic-eval/contracts/options";
import { defineEvaluation, type Json, type MetricKit, type MetricValue } from "@periodic-eval/core";
import {
  samplingSchema,
  resolveSampling,
  measureInBatches,
  type SamplingOptions,
} from "@periodic-eval/core/evaluations";
import { hashJson } from "@periodic-eval/core/random";
import { readNamedFile } from "../config/file-errors.ts";
import type { CollapseReference } from "./collapse-reference.ts";
import { readProbe, readText, type CollapseRow, type ProbeItem, type TextItem } from "./collapse-rows.ts";

/** Thresholds beyond which a sign is an alert, under the keys that files use. */
export interface CollapseThresholds {
  /** Minimum ratio of the entropy to the baseline's. */
  readonly entropy_ratio: number;
  /** Maximum similarity of answers to one prompt, ROUGE-L F1. */
  readonly self_rouge_l: number;
  /** Maximum absolute change of the mean log p per token, in nats. */
  readonly drift_nats: number;
}

/** `claas`: the thresholds of kfallah/CLaaS. */
export const collapsePresets = {
  claas: { entropy_ratio: 0.6, self_rouge_l: 0.85, drift_nats: 2 },
} as const satisfies Readonly<Record<string, CollapseThresholds>>;

export type CollapsePreset = keyof typeof collapsePresets;

/** Measured signs of collapse. An unknown sign is null; `reasons` of the row says why. */
export interface CollapseSigns {
  readonly entropy_nats: number | null;
  readonly entropy_ratio: number | null;
  readonly self_rouge_l: number | null;
  readonly own_drift: number | null;
  readonly baseline_drift: number | null;
}

export type CollapseSign = keyof CollapseSigns;

/** The signs that have a threshold. */
export const alertSigns = ["entropy_ratio", "self_rouge_l", "own_drift", "baseline_drift"] as const;

/** Returns the signs beyond their thresholds. An unknown sign (null) is never an alert, although it may not be healthy. */
export function collapseAlerts(
  signs: CollapseSigns,
  thresholds: CollapseThresholds,
): readonly CollapseSign[] {
  const { entropy_ratio: ratio, self_rouge_l: rouge, own_drift: drift, baseline_drift: baseline } = signs;
  const beyond: readonly (readonly [CollapseSign, boolean])[] = [
    ["entropy_ratio", ratio !== null && ratio < thresholds.entropy_ratio],
    ["self_rouge_l", rouge !== null && rouge > thresholds.self_rouge_l],
    ["own_drift", drift !== null && Math.abs(drift) > thresholds.drift_nats],
    ["baseline_drift", baseline !== null && Math.abs(baseline) > thresholds.drift_nats],
  ];
  return beyond.flatMap(([sign, isBeyond]) => (isBeyond ? [sign] : []));
}

const threshold = z.number("a finite number");
const presetSchema = z.object({
  preset: z.strictObject({
    entropy_ratio: threshold,
    self_rouge_l: threshold,
    drift_nats: threshold,
  } satisfies Record<keyof CollapseThresholds, z.ZodType>),
});

/**
 * Returns the thresholds of a preset, or checks the given ones.
 *
 * @throws PeriodicEvalError `config` for an unknown preset, or a threshold that is not a number.
 */
export function thresholdsOf(preset: CollapsePreset | CollapseThresholds): CollapseThresholds {
  if (typeof preset === "string" && Object.hasOwn(collapsePresets, preset)) return collapsePresets[preset];
  if (isRecord(preset)) return parseOptions("collapse options", presetSchema, { preset }).preset;
  throw configError({
    where: "collapse options",
    path: ["preset"],
    value: preset,
    expected: '"claas", or a map of three thresholds',
    fix: 'Write "claas", or a map: what it lacks is then listed by name.',
  });
}

/** The text and the prompts on which collapse is measured. */
export interface CollapseProbes {
  /** Fixed text over which the model's entropy is measured. */
  readonly text: string;
  /** Prompts with many possible answers. For other prompts, a healthy model also repeats itself. */
  readonly prompts: readonly string[];
}

/** Minimum number of prompts. */
const minProbes = 8;

/** Default probes in plain English, for instruction-tuned models. */
export const collapseProbes: CollapseProbes = {
  text:
    "The harbour was quiet when the ferry came in. A boy sold newspapers by the gate, and two women argued over the price " +
    "of plums. Nobody noticed the dog until it barked. By noon the fog had lifted, the cafés were full, and someone had " +
    "begun to play the accordion.",
  prompts: [
    "Tell me a short story about a lighthouse.",
    "What would you do with a free afternoon?",
    "Describe a room that you like.",
    "Write two sentences about the winter.",
    "Give me an idea for a present.",
    "What makes a good friend?",
    "Invent a new holiday and describe it.",
    "Write the beginning of a letter to a sailor.",
  ],
};

const text = filledString("a non-empty string");
const schema = z.strictObject(
  {
    text,
    prompts: z.array(text, "an array of prompts").min(minProbes, `at least ${minProbes} prompts`),
  } satisfies Record<keyof CollapseProbes, z.ZodType>,
  "an object with text and prompts",
);

/**
 * Reads probes from a YAML file `{ text, prompts }`.
 *
 * @param where The configuration key of the path, for errors.
 * @throws PeriodicEvalError `config` for a missing file, or with file and line for wrong content.
 */
export async function readCollapseProbes(path: string, where = "collapse_probes"): Promise<CollapseProbes> {
  return readNamedFile(path, schema, { where, expected: "a YAML file { text, prompts }" });
}

export interface CollapseOptions {
  /** Default: `collapseProbes`, in plain English. */
  readonly probes?: CollapseProbes;
  /** Independent answers per probe, at least 4. Default 4. */
  readonly samples?: number;
  readonly preset?: CollapsePreset | CollapseThresholds;
  /** Default: temperature 1, no truncation of the distribution, 64 tokens. */
  readonly sampling?: Partial<SamplingOptions>;
  /** The result of `collapseReference` for the baseline's rows. Default: the model without its adapter, if it has one. */
  readonly reference?: CollapseReference;
}

const minSamples = 4;
const samplesRule = `an integer of ${minSamples} or more`;

const optionsSchema = z.strictObject({
  probes: z
    .strictObject({
      text: filledString("a non-empty string"),
      prompts: z
        .array(z.string(), "an array of prompts")
        .min(minProbes, `at least ${minProbes} prompts`)
        .meta({ fix: "Add prompts that have many possible answers." }),
    } satisfies Record<keyof CollapseProbes, z.ZodType>)
    .optional(),
  samples: z
    .int(samplesRule)
    .min(minSamples, samplesRule)
    .meta({ fix: "Raise it: fewer answers do not show how similar they are." })
    .optional(),
  // `thresholdsOf` checks the preset.
  preset: z.custom<CollapseOptions["preset"]>().optional(),
  sampling: samplingSchema.optional(),
  reference: z.custom<CollapseReference>(isRecord, "the result of collapseReference").optional(),
} satisfies Record<keyof CollapseOptions, z.ZodType>);

/**
 * Measures signs of collapse. A model can learn a preference without them:
 * - `entropy_ratio`: the mean entropy of the next token over the positions of a fixed text, divided by the baseline's;
 * - `self_rouge_l`: the similarity of independent answers to one prompt, ROUGE-L F1 over all pairs;
 * - `own_drift`, in nats per token: the model's mean log-prob of its own answers, minus the baseline's mean log-prob of the
 *   baseline's answers. It rises if the model always gives the same answers;
 * - `baseline_drift`, in nats per token: the model's mean log-prob of the baseline's answers, minus the baseline's. It falls if
 *   the model forgets.
 *
 * The baseline is `reference`, or else the model without its adapter. In the snapshot, `alerts` names the signs beyond the
 * thresholds, and `unknown` has the reason for each sign that the engine cannot measure. An unknown sign is null.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function collapseEvaluation(options: CollapseOptions = {}) {
  parseOptions("collapse options", optionsSchema, options);
  const { probes = collapseProbes, samples = 4, preset = "claas", reference = null } = options;
  const thresholds = thresholdsOf(preset);
  const sampling = resolveSampling("collapse options.sampling", options.sampling, {
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

  const reading = { samples, sampling, reference };

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
            ? await readText(model, item!, reading, context)
            : await readProbe(model, item!, reading, context),
        ],
        1,
      ),
    answers: { question: "prompt", answer: "answers.text", tokens: { generated: "answers.tokens" } },
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
      thresholds: { ...thresholds },
      unknown: unknownOf(rows),
    }),
  });
}

/** Returns the signs from a snapshot's metrics. */
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

/** Returns the reason for each unknown sign. */
export const unknownOf = (rows: readonly CollapseRow[]): Readonly<Record<string, string>> =>
  Object.assign({}, ...rows.map(({ reasons }) => reasons)) as Record<string, string>;

/** Converts the baseline's rows to the reference that later measurements are compared with. */
export function collapseReference(rows: readonly CollapseRow[]): CollapseReference {
  const answers = rows
    .filter((row) => row.answers.length > 0)
    .map(
      ({ id, answers: drawn }) =>
        [
          id,
          drawn.flatMap(({ text, nats, tokens }) =>
            nats === null || tokens === null ? [] : [{ text, nats, tokens }],
          ),
        ] as const,
    );
  return {
    entropyNats: rows.find(({ id }) => id === "text")?.entropyNats ?? null,
    answers: answers.some(([, drawn]) => drawn.length > 0) ? Object.fromEntries(answers) : null,
  };
}
