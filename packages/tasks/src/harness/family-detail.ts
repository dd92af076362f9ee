import type { Json, Row } from "@periodic-eval/core";
import type { SampleDetail } from "../tasks/task.ts";

/** Of an item of the families that compare choices, or let the model write. */
interface FamilyItem extends Row {
  readonly at?: number;
  readonly document?: { readonly row?: Json };
  readonly continuations?: readonly string[];
  readonly gold?: readonly number[];
}

/** Of their rows. */
interface FamilyRow extends Row {
  readonly nats?: readonly number[] | null;
  readonly isGreedy?: readonly (boolean | null)[] | null;
  readonly text?: string | null;
  readonly sample?: number;
  readonly score?: Json;
}

/**
 * What rows of `choicesFamily` and `rolloutEvaluation` tell in lm-evaluation-harness' samples: a request for each choice, or one
 * for the completion. Null for rows of other evaluations.
 *
 * @param context the prompt as text
 * @param settings of the task; those of generation stand beside the prompt
 */
export function familyDetail(
  row: Row,
  item: Row,
  { context, settings }: { readonly context: string; readonly settings: Readonly<Record<string, Json>> },
): Partial<SampleDetail> | null {
  const { at, document, continuations, gold } = item as FamilyItem;
  const { nats, isGreedy, text, sample, score = null } = row as FamilyRow;
  const shared = { ...(at !== undefined && { docId: at }), doc: (document?.row ?? document ?? {}) as Json };
  if (continuations !== undefined && nats !== undefined) {
    const scores = (nats ?? []).map((sum, choice) => [sum, isGreedy?.[choice] ?? null]);
    return {
      ...shared,
      target: gold?.length === 1 ? gold[0]! : [...(gold ?? [])],
      arguments: continuations.map((continuation) => [context, continuation]),
      responses: scores.map((one) => [one]),
      filtered: { none: scores },
    };
  }
  if (text === undefined || sample === undefined) return null;
  const written = text ?? "";
  return {
    ...shared,
    arguments: [[context, generationOf(settings)]],
    responses: [[written]],
    filtered: { none: [written], ...answersOf(score) },
  };
}

const generation = ["until", "max_gen_toks", "do_sample", "temperature"];

const generationOf = (settings: Readonly<Record<string, Json>>): Json =>
  Object.fromEntries(Object.entries(settings).filter(([name]) => generation.includes(name)));

/** Where a score is of filters, `{ "strict-match": { answer, … } }`, what each took. */
function answersOf(score: Json): Readonly<Record<string, readonly Json[]>> {
  if (!isMap(score)) return {};
  return Object.fromEntries(
    Object.entries(score).flatMap(([filter, one]) =>
      isMap(one) && one["answer"] !== undefined ? [[filter, [one["answer"]]]] : [],
    ),
  );
}

const isMap = (value: Json): value is { readonly [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value);
