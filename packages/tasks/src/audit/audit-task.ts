import {
  checkKeys,
  encodePair,
  isCount,
  messageOf,
  PeriodicEvalError,
  renderPrompt,
  shown,
  type AnyEvaluation,
  type EvaluableModel,
  type Prompt,
  type Tokenizer,
} from "@periodic-eval/core";
import { findingsOf, type AuditedPrompt, type Finding } from "./findings.ts";

export interface AuditOptions {
  /** How many documents are looked at, the first in the evaluation's order; default 200. */
  readonly documents?: number;
}

/** A token as text; of one that is part of a character its id. */
export interface ShownToken {
  readonly id: number;
  readonly text: string;
}

export interface TaskAudit {
  readonly name: string;
  readonly version: string;
  readonly model: string;
  /** Documents that the evaluation asks, and how many of them were looked at. */
  readonly documents: number;
  readonly audited: number;
  /** The first document's prompt as the model reads it; null where its template fails. */
  readonly first: {
    readonly id: string;
    readonly prompt: readonly ShownToken[] | null;
    /** Of each choice the tokens that are scored; empty where the model writes. */
    readonly continuations: readonly (readonly ShownToken[])[];
  };
  readonly findings: readonly Finding[];
}

/**
 * Looks at how a model reads the prompts of a task, or of any evaluation that tells its prompts, without asking the model
 * anything: a begin-of-text token twice, completions that nothing stops, a system prompt that a template adds, choices
 * that cannot be told apart by their first token.
 *
 * @throws PeriodicEvalError `model` for a model without a tokenizer; `config` for a wrong option, or an evaluation that
 *   tells no prompts; and what the evaluation's `items` throws.
 */
export async function auditTask(
  model: EvaluableModel,
  evaluation: AnyEvaluation,
  options: AuditOptions = {},
): Promise<TaskAudit> {
  checkKeys("auditTask", options, ["documents"]);
  const { documents = 200 } = options;
  if (!isCount(documents, 1))
    throw wrong(
      "config",
      "documents",
      shown(documents),
      "a whole number of 1 or more",
      "Leave it out for 200.",
    );
  const { tokenizer } = model;
  if (tokenizer === undefined) {
    const got = `the model "${model.identity.name}", which shows no tokenizer`;
    throw wrong("model", "model", got, "a model with a tokenizer", "Open the model with its tokenizer.");
  }
  const items = (await evaluation.items(model as never)) as readonly AuditedItem[];
  const some = items.slice(0, documents);
  const prompts = evaluation.prompts?.(model as never, some);
  if (prompts === undefined || prompts.length === 0) {
    const got = `"${evaluation.name}", which tells ${prompts === undefined ? "no prompts" : "no document"}`;
    throw wrong(
      "config",
      "evaluation",
      got,
      "an evaluation of prompts",
      "Open a task, or a family with prompts.",
    );
  }
  const audited = some.map((item, at) => auditedPrompt(tokenizer, item, prompts[at]!));
  const first = audited[0]!;
  return {
    name: evaluation.name,
    version: evaluation.version,
    model: model.identity.name,
    documents: items.length,
    audited: audited.length,
    first: {
      id: first.id,
      prompt: first.rendered && first.rendered.ids.map((id) => shownToken(tokenizer, id)),
      continuations: first.continuations.map((ids) => ids.map((id) => shownToken(tokenizer, id))),
    },
    findings: findingsOf(tokenizer, audited, (evaluation.needs as readonly string[]).includes("generate")),
  };
}

/** Of a family's item. */
interface AuditedItem {
  readonly id: string;
  readonly continuations?: readonly string[];
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
    return { id, prompt, rendered: null, failure: messageOf(error), continuations: [] };
  }
}

function shownToken(tokenizer: Tokenizer, id: number): ShownToken {
  const text = tokenizer.decode([id]);
  return { id, text: text === "" || text.includes("\ufffd") ? `[${id}]` : text };
}

function wrong(code: "config" | "model", option: string, got: string, expected: string, fix: string) {
  return new PeriodicEvalError({ code, where: `auditTask ${option}`, got, expected, fix });
}
