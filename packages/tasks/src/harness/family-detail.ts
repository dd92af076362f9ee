import type { Json, Row } from "@periodic-eval/core";
import { isRecord } from "@periodic-eval/contracts/options";
import type { SampleDetail } from "../tasks/task.ts";

/** The item fields of the families that compare choices or generate. */
interface FamilyItem extends Row {
  readonly at?: number;
  readonly document?: { readonly row?: Json };
  readonly continuations?: readonly string[];
  readonly gold?: readonly number[];
}

/** The row fields of these families. */
interface FamilyRow extends Row {
  readonly nats?: readonly number[] | null;
  readonly isGreedy?: readonly (boolean | null)[] | null;
  readonly text?: string | null;
  readonly sample?: number;
  readonly score?: Json;
}

/**
 * Describes a row of `choicesFamily` or `rolloutEvaluation` for lm-evaluation-harness' samples: one request per choice, or one for
 * the completion. Returns null for rows of other evaluations.
 *
 * @param context The prompt as text.
 * @param settings The task's settings. The generation settings are written beside the prompt.
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
  const completion = text ?? "";
  return {
    ...shared,
    arguments: [[context, generationOf(settings)]],
    responses: [[completion]],
    filtered: { none: [completion], ...answersOf(score) },
  };
}

const generation = ["until", "max_gen_toks", "do_sample", "temperature"];

const generationOf = (settings: Readonly<Record<string, Json>>): Json =>
  Object.fromEntries(Object.entries(settings).filter(([name]) => generation.includes(name)));

/** Returns the extracted answer of each filter, from a score of the form `{ "strict-match": { answer, … } }`. */
function answersOf(score: Json): Readonly<Record<string, readonly Json[]>> {
  if (!isMap(score)) return {};
  return Object.fromEntries(
    Object.entries(score).flatMap(([filter, one]) =>
      isMap(one) && one["answer"] !== undefined ? [[filter, [one["answer"]]]] : [],
    ),
  );
}

const isMap = (value: Json): value is { readonly [key: string]: Json } => isRecord(value);
