import {
  PeriodicEvalError,
  type AnyEvaluation,
  type Awaitable,
  type EvaluationRegistry,
} from "@periodic-eval/core";
import { checkKeys, nearest, quoteValue } from "@periodic-eval/core/internal";
import type { SamplingOptions } from "@periodic-eval/core/evaluations";
import { openVerifier } from "../graders/open-verifier.ts";
import { readPreference, type Preference } from "../preferences/preference.ts";
import { metricNames, type MetricName } from "../config/schema.ts";
import { readCollapseProbes } from "./collapse-probes.ts";
import { collapseEvaluation } from "./collapse.ts";
import {
  collapsePresets,
  readThresholds,
  writtenThresholds,
  type CollapsePreset,
  type CollapseThresholds,
  type WrittenThresholds,
} from "./collapse-summary.ts";
import { complianceEvaluation } from "./compliance.ts";
import { generalEvaluation } from "./general.ts";
import { preferenceMarginEvaluation } from "./preference-margin.ts";

type Options = Readonly<Record<string, unknown>>;

interface Kind {
  readonly keys: readonly string[];
  make(options: Options, where: string): Awaitable<AnyEvaluation>;
}

/** Keys of sampling in a file, and what they are in code. */
const samplingKeys = { max_tokens: "maxNewTokens", temperature: "temperature", top_p: "topP" } as const;
const samplingNames = Object.keys(samplingKeys);

const kinds: Readonly<Record<MetricName, Kind>> = {
  logprob: {
    keys: ["preference", "preferences_dir"],
    make: async (options, where) =>
      preferenceMarginEvaluation({ preference: await preferenceOf(options, where) }),
  },
  compliance: {
    keys: ["preference", "preferences_dir", "samples", ...samplingNames],
    async make(options, where) {
      const preference = await preferenceOf(options, where);
      const grader = await openVerifier(preference);
      return complianceEvaluation({ preference, grader, ...answersOf(options) });
    },
  },
  general: {
    keys: samplingNames,
    make: (options) => generalEvaluation(answersOf(options)),
  },
  collapse: {
    keys: ["preset", "probes", "samples", ...samplingNames],
    async make(options, where) {
      const { preset, probes } = options;
      return collapseEvaluation({
        ...answersOf(options),
        ...(preset !== undefined && { preset: presetOf(preset, `${where}.preset`) }),
        ...(probes !== undefined && { probes: await probesOf(probes, `${where}.probes`) }),
      });
    },
  },
};

/**
 * What makes entries of `evaluations` in a `periodic_eval` block that watch what feedback changes:
 * `buildPeriodicEval(config, { evaluations: feedbackEvaluations })`.
 *
 *     - { feedback: logprob, preference: concise }
 *     - { feedback: compliance, preference: ./polite.yaml, samples: 2, max_tokens: 256, id: polite }
 *     - { feedback: general, max_tokens: 256 }
 *     - { feedback: collapse, preset: claas, probes: ./probes.yaml, every_percent: 10 }
 *
 * `preset` may be thresholds: `{ entropy_ratio: 0.6, self_rouge_l: 0.85, drift_nats: 2 }`.
 */
export const feedbackEvaluations: EvaluationRegistry = {
  feedback(options, where) {
    const { feedback: name, ...own } = options;
    const { keys, make } = kinds[metricNamed(name, `${where}.feedback`)];
    checkKeys(where, own, keys);
    return make(own, where);
  },
};

function metricNamed(name: unknown, where: string): MetricName {
  const known = metricNames.find((one) => one === name);
  if (known !== undefined) return known;
  const close = typeof name === "string" ? nearest(name, metricNames) : null;
  throw wrong(
    where,
    quoteValue(name),
    `one of ${metricNames.join(", ")}`,
    close === null ? "Name one of them." : `Did you mean "${close}"?`,
  );
}

async function preferenceOf(
  { preference, preferences_dir: folder = null }: Options,
  where: string,
): Promise<Preference> {
  const named = textOf(preference, `${where}.preference`, "a preference's name, or the path of its file");
  const inFolder =
    folder === null ? null : textOf(folder, `${where}.preferences_dir`, "the path of a folder");
  return readPreference(named, inFolder, `${where}.preference`);
}

const probesOf = (path: unknown, where: string) =>
  readCollapseProbes(textOf(path, where, "the path of a YAML file"), where);

/** How answers are drawn; what is given is checked by those that take it. */
function answersOf(options: Options): {
  readonly samples?: number;
  readonly sampling: Partial<SamplingOptions>;
} {
  const sampling = Object.entries(samplingKeys).flatMap(([key, name]) =>
    options[key] === undefined ? [] : [[name, options[key]]],
  );
  const { samples } = options;
  return {
    ...(samples !== undefined && { samples: samples as number }),
    sampling: Object.fromEntries(sampling) as Partial<SamplingOptions>,
  };
}

function presetOf(preset: unknown, where: string): CollapsePreset | CollapseThresholds {
  if (typeof preset === "string" && Object.hasOwn(collapsePresets, preset)) return preset as CollapsePreset;
  const names = Object.keys(writtenThresholds(collapsePresets.claas));
  const presets = Object.keys(collapsePresets);
  if (typeof preset === "object" && preset !== null && !Array.isArray(preset)) {
    checkKeys(where, preset, names);
    if (names.every((name) => Number.isFinite((preset as Options)[name])))
      return readThresholds(preset as WrittenThresholds);
  }
  throw wrong(
    where,
    quoteValue(preset),
    `${presets.join(", ")}, or numbers for ${names.join(", ")}`,
    `Write ${presets[0]}, or all three thresholds.`,
  );
}

function textOf(value: unknown, where: string, expected: string): string {
  if (typeof value === "string" && value !== "") return value;
  throw wrong(where, value === undefined ? "nothing" : quoteValue(value), expected, "Correct the value.");
}

const wrong = (where: string, got: string, expected: string, fix: string): PeriodicEvalError =>
  new PeriodicEvalError({ code: "config", where, got, expected, fix });
