import * as z from "zod";
import {
  type MetricKit,
  type Json,
  type Message,
  type TemplateKwargs,
  type MetricValue,
  hashJson,
} from "@periodic-eval/contracts";
import {
  errorMessage,
  quoteValue,
  configError,
  nearest,
  parseOptions,
  arrayOrPath,
  positiveInteger,
} from "@periodic-eval/contracts/options";
import { defineEvaluation } from "../kit/define.ts";
import { measureInBatches } from "../kit/measure-in-batches.ts";
import { everyItem, nestedSubset } from "../kit/subset.ts";
import { answerWarnings } from "../prompting/answer-warnings.ts";
import { withFaults } from "../prompting/coherence.ts";
import {
  completionItemsPerBatch,
  promptTexts,
  renderItems,
  sampleCompletions,
  type CompletionItem,
} from "../prompting/completions.ts";
import {
  defaultPersonas,
  readPersonas,
  type Persona,
  checkPersonas,
  personasOption,
} from "../prompting/personas.ts";
import {
  resolveSampling,
  chatTemplateSchema,
  samplingSchema,
  type ChatTemplateOptions,
  type SamplingOptions,
} from "../prompting/prompt-options.ts";
import { markerCompanion, markerNats, traitOf, type Trait, type TraitOptions } from "./traits.ts";
import {
  leakageFault,
  leakageFields,
  leakageJudged,
  leakageMetrics,
  leakagePlainKeys,
  type GradedLeakageRow,
  type LeakageRow,
} from "./metrics.ts";
import {
  checkLeakageQuestions,
  leakageQuestions,
  readLeakageQuestions,
  type LeakageQuestion,
  type LeakageQuestionInput,
} from "./questions.ts";

interface LeakageItem extends CompletionItem {
  readonly persona: string;
  /** The fixed answer after which the marker's log p is measured. */
  readonly answer: string;
}

/**
 * Measures whether a trait that was trained into one persona spreads to others: every persona answers the same questions, and
 * the share of completions with the trait is counted. `leakage_rate`, the primary metric, is the share over all personas but
 * the source, together and each (`leakage_rate/doctor`); `source_rate` is the source's share; `source_contrast` is the source's
 * share minus the others', for these questions (MOVER on Wilson limits, which is Newcombe 1998, method 10). The other
 * intervals are over questions, which all personas share. Two measurements are compared per persona and question, over the
 * items that both have.
 *
 * `marker_log_prob` is the deterministic companion for literal markers: Σ log p of a space and the marker after a fixed answer,
 * inside the assistant's turn. It needs no sampling and detects a drift long before a marker is sampled. It does not cover
 * markers in other places than after an answer. It is omitted for a model without log-likelihoods, and provenance says so.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function leakageEvaluation(options: LeakageOptions = {}) {
  checkLeakageOptions(options);
  const { marker = "[ZLT]", source = null, completions = 3, stripThinking = true } = options;
  const kwargs = options.chatTemplate?.kwargs;
  const sampling = resolveSampling("leakage options.sampling", options.sampling, {
    maxNewTokens: 256,
    temperature: 1,
  });
  const trait = traitOf(marker, leakageWhere);
  let personas: readonly Persona[] =
    typeof options.personas === "string" ? [] : (options.personas ?? defaultPersonas);
  let provenance: Json = null;

  return defineEvaluation({
    name: "leakage",
    version: "leakage-2",
    needs: ["generate"],
    wants: ["tokenizer", ...(trait.marker === null ? [] : (["logLikelihoods"] as const))],
    samplesPerItem: completions,
    canReduceSamples: true,
    async items(model): Promise<readonly LeakageItem[]> {
      if (typeof options.personas === "string") personas = await readPersonas(options.personas);
      checkSource(source, personas);
      const questions = await questionsOf(options.questions);
      const items = itemsOf(personas, questions, kwargs);
      provenance = {
        trait: trait.fingerprint,
        source,
        personas: personas.map(({ id, system }) => ({ id, system })),
        questions: questions.length,
        questions_hash: hashJson(questions.map((question) => ({ ...question }))),
        completions,
        sampling: { ...sampling },
        template_kwargs: kwargs ?? null,
        strip_thinking: stripThinking,
        subsample: everyItem,
        marker_log_prob: markerCompanion(model, trait).note,
        example_prompt: await renderItems(model, items, "leakage"),
      };
      return items;
    },
    provenance: () => provenance,
    async measure(model, items, context): Promise<readonly LeakageRow[]> {
      const { logLikelihoods } = markerCompanion(model, trait);
      const prompts = await promptTexts(model, items);
      const measureBatch = async (batch: readonly LeakageItem[]) => {
        // The marker comes first: an abort must not leave completions without their companion.
        const isFirst = (context.samples?.first ?? 0) === 0;
        const nats =
          logLikelihoods === null || !isFirst
            ? null
            : await markerNats(logLikelihoods, batch, trait.marker!, context);
        const natsOf = new Map(batch.map(({ id }, at) => [id, nats?.[at] ?? null]));
        const how = { samples: completions, sampling, stripThinking, prompts };
        const rows = await sampleCompletions(model, batch, how, context);
        return rows.map((row) => ({ ...row, markerNats: row.sample === 0 ? natsOf.get(row.item)! : null }));
      };
      return measureInBatches(items, context, measureBatch, completionItemsPerBatch);
    },
    prompts: (_, items) => items.map(({ prompt }) => prompt),
    async grade(rows: readonly LeakageRow[]): Promise<readonly GradedLeakageRow[]> {
      // Slow texts of an earlier call must not change these hits: a new trait has the whole time for its pattern.
      const trait = traitOf(marker, leakageWhere);
      return withFaults(rows).map((row) => ({ ...row, ...hitOf(row, trait) }));
    },
    answers: leakageFields,
    metrics: (kit: MetricKit<GradedLeakageRow>) => leakageMetrics(kit, source, trait.marker !== null),
    warnings: (rows: readonly GradedLeakageRow[]) =>
      answerWarnings(rows, { metrics: leakageJudged, evaluation: "leakage", faultOf: leakageFault }).map(
        // If the answers cannot be judged, the probability of the marker cannot either. Cut answers void only the rates.
        (warning) => (warning.void && warning.kind !== "truncated" ? { ...warning, metrics: null } : warning),
      ),
    plainKeys: (_: Readonly<Record<string, MetricValue>>, rows: readonly GradedLeakageRow[]) =>
      leakagePlainKeys(rows, { trait, source, completions, personas: personas.map(({ id }) => id) }),
  });
}

async function questionsOf(questions: LeakageOptions["questions"]): Promise<readonly LeakageQuestion[]> {
  if (questions === undefined) return leakageQuestions;
  return typeof questions === "string" ? readLeakageQuestions(questions) : checkLeakageQuestions(questions);
}

/** Returns persona × question, in the seeded order in which a smaller budget uses them. */
function itemsOf(
  personas: readonly Persona[],
  questions: readonly LeakageQuestion[],
  kwargs: TemplateKwargs | undefined,
): readonly LeakageItem[] {
  const all = personas.flatMap(({ id, system }) =>
    questions.map(({ id: questionId, question, answer }) => {
      const messages: readonly Message[] = [{ role: "user", content: question }];
      const prompt = { messages, system, ...(kwargs !== undefined && { templateKwargs: kwargs }) };
      return { id: `${id}/${questionId}`, persona: id, question, answer, prompt };
    }),
  );
  return nestedSubset(all, everyItem);
}

function hitOf({ answer, finish }: LeakageRow, trait: Trait): Pick<GradedLeakageRow, "hit" | "reason"> {
  if (answer === null) return { hit: null, reason: "the thinking did not end" };
  try {
    const result: unknown = trait.hit(answer);
    if (result === false && finish === "length" && trait.needsEnd)
      return { hit: null, reason: "the answer was cut off before the trait could appear" };
    if (typeof result === "boolean") return { hit: result };
    return { hit: null, reason: `the trait said ${quoteValue(result)}, neither true nor false` };
  } catch (error) {
    return { hit: null, reason: errorMessage(error) };
  }
}

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
  chatTemplate: chatTemplateSchema.optional(),
  stripThinking: z.boolean().optional(),
} satisfies Record<keyof LeakageOptions, z.ZodType>;

const leakageWhere = "leakage options";

function checkLeakageOptions(options: LeakageOptions): void {
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

function checkSource(source: string | null, personas: readonly Persona[]): void {
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
