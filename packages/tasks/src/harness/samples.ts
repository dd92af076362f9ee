import { createHash } from "node:crypto";
import { isRecord } from "@periodic-eval/contracts/options";
import type { AnyEvaluation, EvaluableModel, Json, Metric, Prompt, Row } from "@periodic-eval/core";
import { renderEach } from "@periodic-eval/core/evaluations";
import type { ChoicesItem, ChoicesRow } from "../families/choices.ts";
import type { ScoredRolloutRow } from "../families/rollout.ts";
import type { SampleDetail, SampledTask } from "../tasks/task.ts";
import { placeOf } from "./entries.ts";
import { asTexts, pythonJson, pythonText } from "./results-file.ts";

/** Describes a row for samples. */
export type DetailOf = (row: Row) => SampleDetail & { readonly row?: Row };

/** Returns a function that describes the rows of a task. If an item has several rows, they name it in `item`. */
export async function detailsOf(
  task: SampledTask,
  evaluation: AnyEvaluation,
  model: EvaluableModel,
  items: readonly Row[],
): Promise<DetailOf> {
  const places = new Map(items.map((item, at) => [item.id, at]));
  const prompts = (await evaluation.prompts?.(model as never, items)) ?? [];
  const contexts = await textsOf(prompts, model);
  return (row) => {
    const docId = places.get((row as { readonly item?: string }).item ?? row.id) ?? places.get(row.id);
    const item = docId === undefined ? row : items[docId]!;
    const context = docId === undefined ? "" : (contexts[docId] ?? "");
    const base = {
      docId: docId ?? null,
      doc: jsonOf(item),
      target: "",
      arguments: [[context, ""]],
      responses: [[""]],
      filtered: {},
    };
    const { settings = {} } = task;
    const ofFamily = familyDetail(row, item, { context, settings });
    const ofTask = task.sample?.(row, item) ?? null;
    return ofFamily === null && ofTask === null ? { ...base, row } : { ...base, ...ofFamily, ...ofTask };
  };
}

/** Returns prompts as the model reads them; a prompt that cannot be rendered as JSON. */
async function textsOf(
  prompts: readonly Prompt[],
  { tokenizer }: EvaluableModel,
): Promise<readonly string[]> {
  const texts = new Map<Prompt, string | null>();
  if (tokenizer !== undefined) {
    const chats = prompts.filter((prompt) => "messages" in prompt);
    for (const [at, result] of (await renderEach(tokenizer, chats)).entries())
      if (result.status === "fulfilled") texts.set(chats[at]!, result.value.text);
    const rows = prompts.filter((prompt) => "ids" in prompt);
    const decoded = await tokenizer.decode(rows.map(({ ids }) => ids)).catch(() => []);
    decoded.forEach((text, at) => texts.set(rows[at]!, text));
  }
  return prompts.map((prompt) =>
    "text" in prompt ? prompt.text : (texts.get(prompt) ?? JSON.stringify(prompt)),
  );
}

const jsonOf = (value: unknown): Json => JSON.parse(JSON.stringify(value)) as Json;

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/**
 * Returns one line per filter and row, with the filter's metrics of that row; a ratio has numerator and denominator. Hashes are
 * SHA-256 as in lm-evaluation-harness 0.4.13: of `json.dumps(doc, indent=2, ensure_ascii=False)`, of the first request's context,
 * and of the target.
 */
export function samplesOf(
  rows: readonly Row[],
  metrics: Readonly<Record<string, Metric<Row>>>,
  detailOf: DetailOf,
) {
  const names = Object.keys(metrics);
  const places = names.map((name) => ({ name, ...placeOf(name, names) }));
  const filters = [...new Set(places.map(({ filter }) => filter))];
  const samples = filters.flatMap((filter) =>
    rows.map((row) => {
      const selected = places.filter((entry) => entry.filter === filter);
      const values = selected.map(({ metric, name }) => [metric, valueOf(metrics[name]!, row)] as const);
      return sampleOf(detailOf(row), filter, values);
    }),
  );
  return {
    lines: samples.map((sample) => JSON.stringify(sample)),
    /** `task_hashes` in lm-evaluation-harness. */
    hash: sha256(
      samples.map(({ doc_hash, prompt_hash, target_hash }) => doc_hash + prompt_hash + target_hash).join(""),
    ),
  };
}

function sampleOf(
  detail: ReturnType<DetailOf>,
  filter: string,
  values: readonly (readonly [metric: string, value: Json])[],
) {
  const { docId, doc, arguments: requests, responses, filtered, row } = detail;
  const target = pythonText(detail.target);
  return {
    doc_id: docId,
    doc,
    target,
    arguments: named(
      "gen_args",
      requests.map((request) => named("arg", request)),
    ),
    resps: asTexts(responses),
    filtered_resps: asTexts(filtered[filter] ?? [[""]]),
    filter,
    metrics: values.map(([metric]) => metric),
    doc_hash: sha256(pythonJson(doc)),
    prompt_hash: sha256(pythonText(requests[0]?.[0] ?? "")),
    target_hash: sha256(target),
    ...Object.fromEntries(values),
    ...(row !== undefined && { row: jsonOf(row) }),
  };
}

/** Returns `{ arg_0: …, arg_1: … }`, which `datasets` can load. */
const named = (name: string, list: readonly Json[]): Readonly<Record<string, Json>> =>
  Object.fromEntries(list.map((value, at) => [`${name}_${at}`, value]));

function valueOf(metric: Metric<Row>, row: Row): Json {
  const seen = metric.observe(row);
  if (seen === null) return null;
  return metric.kind === "ratio" ? [seen.value, seen.weight] : seen.value;
}

/**
 * Describes a row of `choicesFamily` or `rolloutEvaluation` for lm-evaluation-harness' samples: one request per choice, or one for
 * the completion. Returns null for rows of other evaluations.
 *
 * @param context The prompt as text.
 * @param settings The task's settings. The generation settings are written beside the prompt.
 */
function familyDetail(
  row: Row,
  item: Row,
  { context, settings }: { readonly context: string; readonly settings: Readonly<Record<string, Json>> },
): Partial<SampleDetail> | null {
  const { at, document, continuations, gold } = item as Partial<ChoicesItem<{ readonly row?: Json }>>;
  const {
    nats,
    isGreedy,
    text,
    sample,
    score = null,
  } = row as Partial<ChoicesRow> & Partial<ScoredRolloutRow>;
  const shared = { ...(at !== undefined && { docId: at }), doc: (document?.row ?? document ?? {}) as Json };
  if (continuations !== undefined && nats !== undefined) {
    const scores = (nats ?? []).map((sum, choice) => [sum, isGreedy?.[choice] ?? null]);
    return {
      ...shared,
      target: gold?.length === 1 ? gold[0]! : [...(gold ?? [])],
      arguments: continuations.map((continuation) => [context, continuation]),
      responses: scores.map((score) => [score]),
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
  if (!isRecord(score)) return {};
  return Object.fromEntries(
    Object.entries(score).flatMap(([filter, result]) =>
      isRecord(result) && result["answer"] !== undefined ? [[filter, [result["answer"]]]] : [],
    ),
  );
}
