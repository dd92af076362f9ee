import type { AnyEvaluation, Awaitable, EvaluationRegistry } from "@periodic-eval/core";
import {
  atOption,
  camelCaseKeys,
  yamlOption,
  filledString,
  parseOptions,
} from "@periodic-eval/contracts/options";
import type { SamplingOptions } from "@periodic-eval/core/evaluations";
import * as z from "zod";
import { openVerifier } from "../graders/open-verifier.ts";
import { readPreference, type Preference } from "../preferences/preference.ts";
import { metricNames, type MetricName } from "../config/schema.ts";
import {
  readCollapseProbes,
  collapseEvaluation,
  type CollapsePreset,
  type CollapseThresholds,
} from "./collapse.ts";
import { complianceEvaluation } from "./compliance.ts";
import { readGeneralQuestions, generalEvaluation } from "./general.ts";
import { preferenceMarginEvaluation } from "./preference-margin.ts";

const samplingFields = {
  max_tokens: z.unknown().optional(),
  temperature: z.unknown().optional(),
  top_p: z.unknown().optional(),
};

const preferenceFields = {
  preference: filledString("a preference's name, or the path of its file"),
  preferences_dir: filledString("the path of a folder").nullish(),
};
/** Schemas of the entries. The evaluations check `preset`, `samples` and the sampling options. */
const schemas = {
  logprob: z.strictObject(preferenceFields),
  compliance: z.strictObject({ ...preferenceFields, samples: z.unknown().optional(), ...samplingFields }),
  general: z.strictObject({ ...samplingFields, probes: filledString("the path of a YAML file").optional() }),
  collapse: z.strictObject({
    preset: z.unknown().optional(),
    probes: filledString("the path of a YAML file").optional(),
    samples: z.unknown().optional(),
    ...samplingFields,
  }),
} satisfies Record<MetricName, z.ZodType>;

type Options<Name extends MetricName> = z.output<(typeof schemas)[Name]>;

const makers: {
  readonly [Name in MetricName]: (o: Options<Name>, where: string) => Awaitable<AnyEvaluation>;
} = {
  logprob: async (options, where) =>
    preferenceMarginEvaluation({ preference: await preferenceOf(options, where) }),
  async compliance(options, where) {
    const preference = await preferenceOf(options, where);
    const grader = await openVerifier(preference);
    return complianceEvaluation({ preference, grader, ...answersOf(options) });
  },
  async general({ probes, ...options }, where) {
    const questions =
      probes === undefined
        ? {}
        : { questions: await atKey(where, "probes", (origin) => readGeneralQuestions(probes, origin)) };
    return generalEvaluation({ ...answersOf(options), ...questions });
  },
  async collapse({ preset, probes, ...options }, where) {
    return collapseEvaluation({
      ...answersOf(options),
      ...(preset !== undefined && { preset: preset as CollapsePreset | CollapseThresholds }),
      ...(probes !== undefined && {
        probes: await atKey(where, "probes", (origin) => readCollapseProbes(probes, origin)),
      }),
    });
  },
};

/**
 * Registry of the feedback metrics, for entries of `evaluations` in a `periodic_eval` block:
 * `buildPeriodicEval(config, { evaluations: feedbackEvaluations })`.
 *
 *     - { feedback: logprob, preference: concise }
 *     - { feedback: compliance, preference: ./polite.yaml, samples: 2, max_tokens: 256, id: polite }
 *     - { feedback: general, max_tokens: 256 }
 *     - { feedback: collapse, preset: claas, probes: ./probes.yaml, every_percent: 10 }
 *
 * `preset` also accepts thresholds: `{ entropy_ratio: 0.6, self_rouge_l: 0.85, drift_nats: 2 }`.
 */
export const feedbackEvaluations: EvaluationRegistry = {
  feedback(options, where) {
    const { feedback: kind, ...rest } = options;
    const { feedback: name } = parseOptions(where, kindSchema, { feedback: kind });
    return make(name, rest, where);
  },
};

const metricRule = `one of ${metricNames.join(", ")}`;
const kindSchema = z.strictObject({ feedback: z.enum(metricNames, metricRule) });

function make<Name extends MetricName>(
  name: Name,
  options: unknown,
  where: string,
): Awaitable<AnyEvaluation> {
  return makers[name](parseOptions(where, schemas[name], options) as Options<Name>, where);
}

const preferenceOf = (
  { preference, preferences_dir: folder = null }: Options<"logprob">,
  where: string,
): Promise<Preference> => atKey(where, "preference", (origin) => readPreference(preference, folder, origin));

/** Runs `read` for the source that a key of the entry names. */
function atKey<T>(where: string, key: string, read: (origin: string) => Promise<T>): Promise<T> {
  const option = yamlOption(where, key);
  return atOption(option, () => read(option.where));
}

/** Returns `samples` and the sampling options under their names in code. */
const answersOf = ({
  samples,
  max_tokens: maxNewTokens,
  temperature,
  top_p: topP,
}: { readonly [Key in keyof typeof samplingFields | "samples"]?: unknown }) => ({
  ...(samples !== undefined && { samples: samples as number }),
  sampling: camelCaseKeys({ maxNewTokens, temperature, topP }) as Partial<SamplingOptions>,
});
