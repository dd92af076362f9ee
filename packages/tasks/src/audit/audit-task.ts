import {
  PeriodicEvalError,
  type AnyEvaluation,
  type EvaluableModel,
  type Json,
  type Prompt,
  type Tokenizer,
} from "@periodic-eval/core";
import { checkKeys, isCount, errorMessage, quoteValue } from "@periodic-eval/core/internal";
import { encodePair, renderPrompt } from "@periodic-eval/core/evaluations";
import { findingsOf, type AuditedPrompt, type Finding } from "./findings.ts";
import { shownTokens, type ShownToken } from "./shown-tokens.ts";

export interface AuditOptions {
  /** How many documents are looked at, the first in the evaluation's order; default 200. */
  readonly documents?: number;
  /** How many of them are shown; default 2. */
  readonly shown?: number;
}

/** A document as the model reads it. */
export interface ShownDocument {
  readonly id: string;
  /** Null where the template fails. */
  readonly prompt: readonly ShownToken[] | null;
  /** Why the template fails; null where it does not. */
  readonly failure: string | null;
  /** Of each choice the tokens that are scored; empty where the model writes. */
  readonly continuations: readonly (readonly ShownToken[])[];
  /** Indices of the right choices; empty where there are none. */
  readonly gold: readonly number[];
}

/** How the model writes, as the evaluation's provenance tells it; null where it does not. */
export interface Writing {
  readonly maxNewTokens: number | null;
  readonly temperature: number | null;
  /** Texts and tokens that end a completion. */
  readonly stop: readonly string[];
  readonly stopTokens: readonly ShownToken[];
}

export interface TaskAudit {
  readonly name: string;
  readonly version: string;
  readonly model: string;
  /** Documents that the evaluation asks, and how many of them were looked at. */
  readonly documents: number;
  readonly audited: number;
  readonly shown: readonly ShownDocument[];
  /** Null where the model writes nothing. */
  readonly writing: Writing | null;
  readonly findings: readonly Finding[];
}

/**
 * Looks at how a model reads the prompts of a task, or of any evaluation that tells its prompts, without asking the model
 * anything, so that it needs no weights: a begin-of-text token twice, completions that nothing stops, a system prompt that a
 * template adds, choices that cannot be told apart by their first token, prompts that the context does not hold.
 *
 * @throws PeriodicEvalError `model` for a model without a tokenizer; `config` for a wrong option, or an evaluation that
 *   tells no prompts; and what the evaluation's `items` throws.
 */
export async function auditTask(
  model: EvaluableModel,
  evaluation: AnyEvaluation,
  options: AuditOptions = {},
): Promise<TaskAudit> {
  const { documents, shown: first } = checked(options);
  const { tokenizer, contextLength } = model;
  if (tokenizer === undefined) {
    const got = `the model "${model.identity.name}", which shows no tokenizer`;
    throw wrong("model", "model", got, "a model with a tokenizer", "Open the model with its tokenizer.");
  }
  const items = (await evaluation.items(model as never)) as readonly AuditedItem[];
  const some = items.slice(0, documents);
  const prompts = evaluation.prompts?.(model as never, some);
  if (prompts === undefined || prompts.length === 0) {
    const got = `"${evaluation.name}", which tells ${prompts === undefined ? "no prompts" : "no document"}`;
    const fix = "Open a task, or a family with prompts.";
    throw wrong("config", "evaluation", got, "an evaluation of prompts", fix);
  }
  const audited = some.map((item, at) => auditedPrompt(tokenizer, item, prompts[at]!));
  const isWriting = (evaluation.needs as readonly string[]).includes("generate");
  const writing = isWriting ? writingOf(tokenizer, evaluation.provenance?.() ?? null) : null;
  const maxNewTokens = writing?.maxNewTokens ?? 0;
  return {
    name: evaluation.name,
    version: evaluation.version,
    model: model.identity.name,
    documents: items.length,
    audited: audited.length,
    shown: audited.slice(0, first).map((prompt, at) => shownDocument(tokenizer, prompt, some[at]!)),
    writing,
    findings: findingsOf(tokenizer, audited, { isWriting, contextLength, maxNewTokens }),
  };
}

/** Of a family's item. */
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

/** A rollout's provenance tells its sampling. */
function writingOf(tokenizer: Tokenizer, provenance: Json): Writing {
  const sampling = (isMap(provenance) && provenance["sampling"]) || null;
  const told = isMap(sampling) ? sampling : {};
  const number = (value: Json | undefined) => (typeof value === "number" ? value : null);
  const stop = Array.isArray(told["stop"]) ? (told["stop"] as readonly string[]) : [];
  return {
    maxNewTokens: number(told["maxNewTokens"]),
    temperature: number(told["temperature"]),
    stop,
    stopTokens: shownTokens(tokenizer, tokenizer.stopIds),
  };
}

const isMap = (value: Json): value is { readonly [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function checked(options: AuditOptions): Required<AuditOptions> {
  checkKeys("auditTask", options, ["documents", "shown"]);
  const { documents = 200, shown: first = 2 } = options;
  for (const [name, value, least] of [
    ["documents", documents, 1],
    ["shown", first, 0],
  ] as const) {
    if (isCount(value, least)) continue;
    const fix = `Leave it out for ${name === "shown" ? 2 : 200}.`;
    throw wrong("config", name, quoteValue(value), `a whole number of ${least} or more`, fix);
  }
  return { documents, shown: first };
}

function wrong(code: "config" | "model", option: string, got: string, expected: string, fix: string) {
  return new PeriodicEvalError({ code, where: `auditTask ${option}`, got, expected, fix });
}
