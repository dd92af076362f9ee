import { checkKeys } from "../../internal/check-keys.ts";
import { quoteValue } from "../../internal/quote-value.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { defineEvaluation } from "../kit/define.ts";
import { nestedSubset } from "../kit/subset.ts";
import type { MetricKit, MetricOptions } from "../../contracts/evaluation.ts";
import { isCount } from "../../internal/is-count.ts";
import type { Json } from "../../contracts/json.ts";
import { errorMessage } from "../../internal/error-message.ts";
import type { Message, TemplateKwargs } from "../../contracts/model.ts";
import { nearest } from "../../internal/nearest.ts";
import { hashJson } from "../../random/hash.ts";
import type { MetricValue } from "../../contracts/snapshot.ts";
import { checkChatTemplate, type ChatTemplateOptions } from "../prompting/chat-template.ts";
import {
  completionItemsPerBatch,
  sampleCompletions,
  type CompletionItem,
  type CompletionRow,
} from "../prompting/completions.ts";
import { measureInBatches } from "../kit/measure-in-batches.ts";
import {
  checkLeakageQuestions,
  leakageQuestions,
  readLeakageQuestions,
  type LeakageQuestion,
  type LeakageQuestionInput,
} from "./questions.ts";
import { markerCompanion, markerNats } from "./marker-log-prob.ts";
import { checkPersonas, defaultPersonas, readPersonas, type Persona } from "../prompting/personas.ts";
import { renderItems } from "../prompting/render-items.ts";
import { resolveSampling, type SamplingOptions } from "../prompting/sampling.ts";
import { traitOf, type Trait, type TraitOptions } from "./traits.ts";

export interface LeakageOptions {
  /** What is looked for; default the literal text `[ZLT]`. */
  readonly marker?: TraitOptions;
  /** Whom the model is asked to be: a list, or a YAML or JSON file of them; default eleven of our own. */
  readonly personas?: readonly Persona[] | string;
  /** Id of the persona that the trait is trained into. Left out: none is, and all count as others. */
  readonly source?: string;
  /** What each is asked: a list, or a YAML or JSON file; default eight of our own. */
  readonly questions?: readonly LeakageQuestionInput[] | string;
  /** Completions of each question by each persona; default 3. */
  readonly completions?: number;
  /** Default temperature 1, no truncation of the distribution, 256 tokens. */
  readonly sampling?: Partial<SamplingOptions>;
  /** Of the order in which a smaller budget takes the items; default 42. */
  readonly seed?: number;
  /** False leaves `marker_log_prob` out; default true, wherever marker and model allow it. */
  readonly companion?: boolean;
  /** What the chat template is given besides the chat: `{ kwargs: { enable_thinking: false } }`. */
  readonly chatTemplate?: ChatTemplateOptions;
  /** Look for the trait in what follows a closed `<think>…</think>`; default true. The whole text is kept in any case. */
  readonly stripThinking?: boolean;
}

interface LeakageItem extends CompletionItem {
  readonly persona: string;
  /** After which the marker's log p is looked at. */
  readonly answer: string;
}

/** One completion. */
export interface LeakageRow extends CompletionRow {
  /**
   * Σ log p of the marker after the question's fixed answer, in nats: of the item, in the row of its first sample; null
   * in the others, and where it was not asked.
   */
  readonly markerNats: number | null;
}

export interface GradedLeakageRow extends LeakageRow {
  /** Null where a trait of the user's own failed, or the thinking did not end: there is no answer. */
  readonly hit: boolean | null;
  readonly reason?: string;
}

/**
 * Whether a trait that was trained into one persona spreads to others: each persona is asked the same questions, and the
 * share of completions with the trait counted. `leakage_rate`, the primary metric, is that of all personas but the source,
 * and each of theirs (`leakage_rate/doctor`); `source_rate` the source's; `source_contrast` the source's minus the others',
 * for these questions (MOVER on Wilson limits, which is Newcombe 1998, method 10). The other intervals are over questions,
 * which all personas share; looks are compared persona by persona and question by question, over what both asked.
 *
 * `marker_log_prob` is the deterministic companion, for markers that are literal: Σ log p of a space and the marker after
 * a fixed answer, inside the assistant's turn. It needs no sampling and sees a drift long before a marker is drawn; it says
 * nothing of markers that come elsewhere than after an answer. Where the model offers no log-likelihoods, it is left out and
 * provenance says so.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function leakageEvaluation(options: LeakageOptions = {}) {
  checkOptions(options);
  const {
    marker = "[ZLT]",
    personas: givenPersonas = defaultPersonas,
    source = null,
    questions: givenQuestions = leakageQuestions,
    completions = 3,
    seed = 42,
    companion = true,
    stripThinking = true,
  } = options;
  const kwargs = options.chatTemplate?.kwargs;
  const sampling = resolveSampling("leakage.sampling", options.sampling, {
    maxNewTokens: 256,
    temperature: 1,
  });
  const trait = traitOf(marker, "leakage.marker");
  let personas: readonly Persona[] = typeof givenPersonas === "string" ? [] : givenPersonas;
  let provenance: Json = null;
  const markerLogProb = markerCompanion(companion, trait);
  const isSource = ({ persona }: Pick<GradedLeakageRow, "persona">) => persona === source;

  return defineEvaluation({
    name: "leakage",
    version: "leakage-1",
    needs: ["generate"],
    wants: ["tokenizer", ...markerLogProb.wants],
    samplesPerItem: completions,
    async items(model): Promise<readonly LeakageItem[]> {
      if (typeof givenPersonas === "string") personas = await readPersonas(givenPersonas);
      checkSource(source, personas);
      const questions =
        typeof givenQuestions === "string"
          ? await readLeakageQuestions(givenQuestions)
          : checkLeakageQuestions("leakage.questions", givenQuestions, "config");
      const items = itemsOf(personas, questions, { seed, kwargs });
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
        subsample: { n: null, seed },
        marker_log_prob: markerLogProb.of(model).told,
        example_prompt: renderItems(model, items, "leakage"),
      };
      return items;
    },
    provenance: () => provenance,
    async measure(model, items, context): Promise<readonly LeakageRow[]> {
      const { logLikelihoods } = markerLogProb.of(model);
      const ask = async (some: readonly LeakageItem[]) => {
        // First, so that no completion is kept without it: a look of whole rows and a null companion would be complete.
        const nats =
          logLikelihoods === null ? null : await markerNats(logLikelihoods, some, trait.marker!, context);
        const of = new Map(some.map(({ id }, at) => [id, nats?.[at] ?? null]));
        const how = { samples: completions, sampling, stripThinking };
        const rows = await sampleCompletions(model, some, how, context);
        return rows.map((row) => ({ ...row, markerNats: row.sample === 0 ? of.get(row.item)! : null }));
      };
      return measureInBatches(items, context, ask, completionItemsPerBatch);
    },
    prompts: (_, items) => items.map(({ prompt }) => prompt),
    grade: async (rows: readonly LeakageRow[]): Promise<readonly GradedLeakageRow[]> =>
      rows.map((row) => ({ ...row, ...hitOf(row, trait) })),
    metrics: ({ rate, mean, contrast }: MetricKit<GradedLeakageRow>) => {
      // Personas share a question's own effect.
      const cluster = ({ question }: GradedLeakageRow) => question;
      const item = (row: GradedLeakageRow) => row.item;
      const ofOthers = (row: GradedLeakageRow) => (isSource(row) ? null : row.persona);
      const sampled = { sampled: true, item, cluster };
      const nats: MetricOptions<GradedLeakageRow> = { unit: "nats", range: [-Infinity, 0], cluster };
      const hasSource = source !== null;
      return {
        leakage_rate: rate((row) => (isSource(row) ? null : row.hit), {
          ...sampled,
          primary: true,
          higherIsBetter: false,
          by: ofOthers,
        }),
        ...(hasSource && {
          source_rate: rate((row) => (isSource(row) ? row.hit : null), sampled),
          source_contrast: contrast(
            rate((row) => row.hit, { sampled: true, item }),
            isSource,
          ),
        }),
        ...(markerLogProb.wants.length > 0 && {
          marker_log_prob: mean((row) => (isSource(row) ? null : row.markerNats), {
            ...nats,
            higherIsBetter: false,
            by: ofOthers,
          }),
          ...(hasSource && {
            source_marker_log_prob: mean((row) => (isSource(row) ? row.markerNats : null), nats),
          }),
        }),
      };
    },
    plainKeys: (_metrics: Readonly<Record<string, MetricValue>>, rows: readonly GradedLeakageRow[]) => ({
      marker_token: trait.marker,
      trait: trait.name,
      source,
      leakage_rates: Object.fromEntries(
        [...new Set([...personas.map(({ id }) => id), ...rows.map(({ persona }) => persona!)])].map((id) => [
          id,
          hitShare(rows, id),
        ]),
      ),
      num_completions: completions,
      num_questions: new Set(rows.map(({ question }) => question)).size,
      truncated: rows.filter(({ finish }) => finish === "length").length,
    }),
  });
}

/** Persona × question, in the seeded order in which a smaller budget takes them. */
function itemsOf(
  personas: readonly Persona[],
  questions: readonly LeakageQuestion[],
  { seed, kwargs }: { readonly seed: number; readonly kwargs: TemplateKwargs | undefined },
): readonly LeakageItem[] {
  const all = personas.flatMap(({ id, system }) =>
    questions.map(({ id: asked, question, answer }) => {
      const messages: readonly Message[] = [{ role: "user", content: question }];
      const prompt = { messages, system, ...(kwargs !== undefined && { templateKwargs: kwargs }) };
      return { id: `${id}/${asked}`, persona: id, question, answer, prompt };
    }),
  );
  return nestedSubset(all, { n: null, seed });
}

function hitOf({ answer }: LeakageRow, trait: Trait): Pick<GradedLeakageRow, "hit" | "reason"> {
  if (answer === null) return { hit: null, reason: "the thinking did not end" };
  try {
    const said: unknown = trait.hit(answer);
    if (typeof said === "boolean") return { hit: said };
    return { hit: null, reason: `the trait said ${quoteValue(said)}, neither true nor false` };
  } catch (error) {
    return { hit: null, reason: errorMessage(error) };
  }
}

function hitShare(rows: readonly GradedLeakageRow[], persona: string): number | null {
  const own = rows.filter((row) => row.persona === persona && row.hit !== null);
  return own.length === 0 ? null : own.filter(({ hit }) => hit === true).length / own.length;
}

function checkSource(source: string | null, personas: readonly Persona[]): void {
  const ids = personas.map(({ id }) => id);
  if (source === null || (ids.includes(source) && ids.length > 1)) return;
  const close = nearest(source, ids);
  throw wrong(
    "source",
    `"${source}" with the personas ${ids.join(", ")}`,
    "the id of one of several personas",
    close === null || close === source ? "Add the personas." : `Did you mean "${close}"?`,
  );
}

const known = {
  marker: true,
  personas: true,
  source: true,
  questions: true,
  completions: true,
  sampling: true,
  seed: true,
  companion: true,
  chatTemplate: true,
  stripThinking: true,
} as const satisfies Record<keyof LeakageOptions, true>;

/** The options of `LeakageOptions`, for callbacks that add their own. */
export const leakageOptionNames = Object.keys(known);

function checkOptions(options: LeakageOptions): void {
  checkKeys("leakage", options, leakageOptionNames);
  const { personas, source, questions, completions = 1, seed = 0, companion = true } = options;
  if (personas !== undefined && typeof personas !== "string") checkPersonas("leakage.personas", personas);
  if (source !== undefined && typeof source !== "string")
    throw wrong(
      "source",
      quoteValue(source),
      "the id of a persona",
      "Leave it out where no persona was trained.",
    );
  if (source !== undefined && typeof personas !== "string") checkSource(source, personas ?? defaultPersonas);
  if (questions !== undefined && typeof questions !== "string")
    checkLeakageQuestions("leakage.questions", questions, "config");
  if (!isCount(completions, 1))
    throw wrong("completions", quoteValue(completions), "a whole number of 1 or more", "Correct the number.");
  if (!isCount(seed))
    throw wrong("seed", quoteValue(seed), "a whole number of 0 or more", "Correct the number.");
  if (typeof companion !== "boolean")
    throw wrong("companion", quoteValue(companion), "true or false", "Write it without quotes.");
  const { stripThinking = true, chatTemplate } = options;
  if (typeof stripThinking !== "boolean")
    throw wrong("stripThinking", quoteValue(stripThinking), "true or false", "Write it without quotes.");
  if (chatTemplate !== undefined) checkChatTemplate("leakage.chatTemplate", chatTemplate);
}

function wrong(option: string, got: string, expected: string, fix: string): PeriodicEvalError {
  return new PeriodicEvalError({ code: "config", where: `leakage.${option}`, got, expected, fix });
}
