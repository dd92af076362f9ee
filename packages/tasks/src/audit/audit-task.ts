import {
  PeriodicEvalError,
  type AnyEvaluation,
  type EvaluableModel,
  type Json,
  type Prompt,
  type Tokenizer,
} from "@periodic-eval/core";
import { errorMessage, isRecord, parseOptions } from "@periodic-eval/core/internal";
import { encodePair, renderPrompt } from "@periodic-eval/core/evaluations";
import * as z from "zod";
import { findingsOf, type AuditedPrompt, type Finding } from "./findings.ts";
import { shownTokens, type ShownToken } from "./shown-tokens.ts";

export interface AuditOptions {
  /** How many documents to audit: the first in the evaluation's order; default 200. */
  readonly documents?: number;
  /** How many of them to show; default 2. */
  readonly shown?: number;
}

/** A document as the model reads it. */
export interface ShownDocument {
  readonly id: string;
  /** Null if the template fails. */
  readonly prompt: readonly ShownToken[] | null;
  /** Why the template fails; null if it does not. */
  readonly failure: string | null;
  /** The scored tokens of each choice; empty if the model generates. */
  readonly continuations: readonly (readonly ShownToken[])[];
  /** Indices of the right choices; empty if there are none. */
  readonly gold: readonly number[];
}

/** How the model generates, from the evaluation's provenance; null if unknown. */
export interface GenerationSettings {
  readonly maxNewTokens: number | null;
  readonly temperature: number | null;
  readonly stop: readonly string[];
  /** Tokens that end a completion. */
  readonly stopTokens: readonly ShownToken[];
}

export interface TaskAudit {
  readonly name: string;
  readonly version: string;
  readonly model: string;
  /** Number of documents of the evaluation. */
  readonly documents: number;
  /** How many of them were audited. */
  readonly audited: number;
  readonly shown: readonly ShownDocument[];
  /** Null if the model does not generate. */
  readonly generation: GenerationSettings | null;
  readonly findings: readonly Finding[];
}

/**
 * Checks how a model reads the prompts of a task, or of any evaluation with `prompts`. The model is not run, so it needs no
 * weights. Finds a duplicated begin-of-text token, completions that nothing stops, a system prompt added by the template,
 * choices with equal first tokens, and prompts that exceed the context.
 *
 * @throws PeriodicEvalError `model` for a model without a tokenizer; `config` for a wrong option or an evaluation without
 *   prompts; and what the evaluation's `items` throws.
 */
export async function auditTask(
  model: EvaluableModel,
  evaluation: AnyEvaluation,
  options: AuditOptions = {},
): Promise<TaskAudit> {
  const { documents, shown: first } = parseOptions("auditTask options", optionsSchema, options);
  const { tokenizer, contextLength } = model;
  if (tokenizer === undefined) {
    throw new PeriodicEvalError({
      code: "model",
      where: "auditTask model",
      got: `the model "${model.identity.name}", which has no tokenizer`,
      expected: "a model with a tokenizer",
      fix: "Open the model with its tokenizer.",
    });
  }
  const items = (await evaluation.items(model as never)) as readonly AuditedItem[];
  const some = items.slice(0, documents);
  const prompts = evaluation.prompts?.(model as never, some);
  if (prompts === undefined || prompts.length === 0) {
    throw new PeriodicEvalError({
      code: "config",
      where: "auditTask evaluation",
      got: `"${evaluation.name}", which has no ${prompts === undefined ? "prompts" : "documents"}`,
      expected: "an evaluation with prompts",
      fix: "Open a task, or use a family with prompts.",
    });
  }
  const audited = some.map((item, at) => auditedPrompt(tokenizer, item, prompts[at]!));
  const isGenerating = (evaluation.needs as readonly string[]).includes("generate");
  const generation = isGenerating ? generationSettings(tokenizer, evaluation.provenance?.() ?? null) : null;
  const maxNewTokens = generation?.maxNewTokens ?? 0;
  return {
    name: evaluation.name,
    version: evaluation.version,
    model: model.identity.name,
    documents: items.length,
    audited: audited.length,
    shown: audited.slice(0, first).map((prompt, at) => shownDocument(tokenizer, prompt, some[at]!)),
    generation,
    findings: findingsOf(tokenizer, audited, { isGenerating, contextLength, maxNewTokens }),
  };
}

const optionsSchema = z.strictObject({
  documents: z.int("a positive integer").positive("a positive integer").default(200),
  shown: z.int("an integer of 0 or more").nonnegative("an integer of 0 or more").default(2),
} satisfies Record<keyof AuditOptions, z.ZodType>);

/** The fields of a family's item that an audit reads. */
interface AuditedItem {
  readonly id: string;
  readonly continuations?: readonly string[];
  readonly gold?: readonly number[];
}

function auditedPrompt(
  tokenizer: Tokenizer,
  { id, continuations = [] }: AuditedItem,
  prompt: Prompt,
): AuditedPrompt {
  try {
    const scored = continuations.map((continuation) =>
      encodePair(tokenizer, { context: prompt, continuation }),
    );
    return {
      id,
      prompt,
      rendered: renderPrompt(tokenizer, prompt),
      failure: null,
      continuations: scored.map((pair) => pair.continuation),
    };
  } catch (error) {
    return { id, prompt, rendered: null, failure: errorMessage(error), continuations: [] };
  }
}

function shownDocument(
  tokenizer: Tokenizer,
  { id, rendered, failure, continuations }: AuditedPrompt,
  { gold = [] }: AuditedItem,
): ShownDocument {
  return {
    id,
    prompt: rendered && shownTokens(tokenizer, rendered.ids),
    failure,
    continuations: continuations.map((ids) => shownTokens(tokenizer, ids, rendered?.ids.at(-1) ?? null)),
    gold,
  };
}

/** Reads the sampling settings from a rollout's provenance. */
function generationSettings(tokenizer: Tokenizer, provenance: Json): GenerationSettings {
  const given: unknown = isRecord(provenance) ? provenance["sampling"] : null;
  const sampling = isRecord(given) ? given : {};
  const number = (value: unknown) => (typeof value === "number" ? value : null);
  const stop = Array.isArray(sampling["stop"]) ? (sampling["stop"] as readonly string[]) : [];
  return {
    maxNewTokens: number(sampling["maxNewTokens"]),
    temperature: number(sampling["temperature"]),
    stop,
    stopTokens: shownTokens(tokenizer, tokenizer.stopIds),
  };
}
