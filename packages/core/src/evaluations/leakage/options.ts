import * as z from "zod";
import {
  configError,
  nearest,
  parseOptions,
  arrayOrPath,
  integerFromZero,
  positiveInteger,
} from "@periodic-eval/contracts/options";
import {
  chatTemplateSchema,
  samplingSchema,
  type ChatTemplateOptions,
  type SamplingOptions,
} from "../prompting/prompt-options.ts";
import { checkPersonas, defaultPersonas, personasOption, type Persona } from "../prompting/personas.ts";
import { checkLeakageQuestions, type LeakageQuestionInput } from "./questions.ts";
import type { TraitOptions } from "./traits.ts";

export interface LeakageOptions {
  /** The trait to detect. Default: the literal string `[ZLT]`. */
  readonly marker?: TraitOptions;
  /** The personas: a list, or a source of `readPersonas`. Default: the eleven `defaultPersonas`. */
  readonly personas?: readonly Persona[] | string;
  /** Id of the persona that the trait is trained into. Null (the default): it is trained into none, so that all personas count. */
  readonly source?: string | null;
  /** The questions: a list; a YAML, JSON, JSON Lines or Parquet file; or `hf:owner/dataset[/config][/split]`. Default: the eight `leakageQuestions`. */
  readonly questions?: readonly LeakageQuestionInput[] | string;
  /** Completions per question and persona. Default 3. */
  readonly completions?: number;
  /** Default: temperature 1, the whole distribution, 256 tokens. */
  readonly sampling?: Partial<SamplingOptions>;
  /** Seed of the order in which a smaller budget uses the items. Default 42. */
  readonly seed?: number;
  /** Variables of the chat template: `{ kwargs: { enable_thinking: false } }`. */
  readonly chatTemplate?: ChatTemplateOptions;
  /** Detects the trait only after a closed `<think>…</think>`. Default true. Rows keep the whole text in any case. */
  readonly stripThinking?: boolean;
}

export const leakageShape = {
  // `traitOf` checks the marker.
  marker: z.custom<TraitOptions>().optional(),
  personas: personasOption.optional(),
  source: z
    .string("the id of a persona")
    .nullable()
    .meta({ fix: "Write the persona's id in quotes, or null if the trait is trained into no persona." })
    .optional(),
  questions: arrayOrPath<LeakageQuestionInput>(
    "an array of questions, a file of them, or hf:owner/dataset",
  ).optional(),
  completions: positiveInteger.optional(),
  sampling: samplingSchema.optional(),
  seed: integerFromZero.optional(),
  chatTemplate: chatTemplateSchema.optional(),
  stripThinking: z.boolean().optional(),
} satisfies Record<keyof LeakageOptions, z.ZodType>;

export const leakageWhere = "leakage options";

export function checkLeakageOptions(options: LeakageOptions): void {
  parseOptions(leakageWhere, z.strictObject(leakageShape), options);
  const { personas = defaultPersonas, source = null, questions } = options;
  if (typeof personas !== "string") {
    checkPersonas(leakageWhere, personas);
    checkSource(source, personas);
  }
  if (questions !== undefined && typeof questions !== "string") checkLeakageQuestions(questions);
}

/**
 * Requires that `source` is set, though it may be null: without it, the trained persona would count as one that the trait spread to.
 *
 * @throws PeriodicEvalError `config` if it is missing.
 */
export function requireSource({ source, personas = defaultPersonas }: LeakageOptions): void {
  if (source !== undefined) return;
  const ids = typeof personas === "string" ? `one of ${personas}` : personas.map(({ id }) => id).join(", ");
  throw configError({
    where: leakageWhere,
    path: ["source"],
    got: "nothing, so that the trained persona would count as one that the trait spread to",
    expected: `the id of the persona that the trait is trained into (${ids}), or null`,
    fix: "Write the persona's id, or null if the trait is trained into no persona.",
  });
}

export function checkSource(source: string | null, personas: readonly Persona[]): void {
  const ids = personas.map(({ id }) => id);
  if (source === null || (ids.includes(source) && ids.length > 1)) return;
  const close = nearest(source, ids);
  throw configError({
    where: leakageWhere,
    path: ["source"],
    got: `"${source}" with the personas ${ids.join(", ")}`,
    expected: "the id of one of several personas",
    fix: close === null || close === source ? "Add the personas." : `Did you mean "${close}"?`,
  });
}
