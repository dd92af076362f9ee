import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import type { MetricValue, Snapshot } from "@periodic-eval/contracts";
import { isRecord } from "@periodic-eval/contracts/options";
import { makeFolder, undisturbed, writeFileAtomic } from "@periodic-eval/store";
import type { WriteFormat } from "./command.ts";
import {
  escaped,
  datasetOf,
  libraryOf,
  metadataOf,
  modelName,
  samplingOf,
  wellFormed,
  wellFormedJson,
  type MeasuredSample,
  type Measurement,
} from "./measurement.ts";

/** The version of the schemas `eval.schema.json` and `instance_level_eval.schema.json` of every-eval-ever 0.3.0. */
const schemaVersion = "0.3.0";

/**
 * Writes the aggregate record of each measurement, and a line per graded answer, in the layout of the datastore of Every Eval Ever:
 * `data/periodic-eval/<owner>/<name>/<uuid>.json` and `…_samples.jsonl`. Leaves out measurements without a value.
 */
export const writeEveryEvalEver: WriteFormat = async (measurements, { folder, model }) => {
  const files: string[] = [];
  for await (const measurement of measurements) {
    const known = Object.entries(measurement.snapshot.metrics).flatMap(([name, metric]) =>
      metric.value === null ? [] : [[name, { ...metric, value: metric.value }] as const],
    );
    if (known.length === 0) continue;
    const { snapshot } = measurement;
    const name = model ?? modelName(snapshot);
    const id =
      name.includes("/") && model !== undefined ? name : `local/${pathPart(name.split("/").at(-1)!)}`;
    const path = ["data", "periodic-eval", ...id.split("/").map(pathPart), uuidOf(snapshot)].join("/");
    const identity: Identity = {
      evaluation_id: `periodic-eval/${id}/${snapshot.phase}/${snapshot.id}/${snapshot.step}/${secondsOf(snapshot)}`,
      model_id: id,
    };
    await makeFolder(dirname(join(folder, path)));
    const lines = measurement.samples.flatMap((sample) => lineOf(sample, snapshot, identity) ?? []);
    const text = lines.map((line) => `${line}\n`).join("");
    const details = lines.length > 0 && {
      detailed_evaluation_results: {
        format: "jsonl",
        file_path: `${path}_samples.jsonl`,
        hash_algorithm: "sha256",
        checksum: sha256(text),
        total_rows: lines.length,
        additional_details: { answers_without_a_grade: String(measurement.samples.length - lines.length) },
      },
    };
    if (lines.length > 0) {
      await writeFileAtomic(join(folder, `${path}_samples.jsonl`), text);
      files.push(`${path}_samples.jsonl`);
    }
    const record = { ...recordOf(measurement, known, identity), ...details };
    await writeFileAtomic(join(folder, `${path}.json`), `${wellFormedJson(record, 2)}\n`);
    files.push(`${path}.json`);
  }
  return { files };
};

interface Identity {
  readonly evaluation_id: string;
  readonly model_id: string;
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Returns a UUID of version 4 that the snapshot decides, so that a second export writes the same files. */
function uuidOf({ sha256: hash, phase, id, step }: Snapshot): string {
  const hex = sha256(hash ?? `${phase}/${id}/${step}`);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join("-");
}

const pathPart = (name: string): string =>
  name.replaceAll(/[^\w.-]/g, "_").replace(/^\.+|\.+$/g, "") || "model";

const secondsOf = ({ created_at: created }: Snapshot): string => String(Date.parse(created) / 1000);

/** The schema takes only strings here. */
const details = (values: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, typeof value === "string" ? value : JSON.stringify(value)]],
    ),
  );

type KnownMetric = MetricValue & { readonly value: number };

function recordOf(
  { snapshot }: Measurement,
  metrics: readonly (readonly [name: string, metric: KnownMetric])[],
  { evaluation_id, model_id }: Identity,
) {
  const { provenance, weights } = snapshot;
  const { engine, ...ofModel } = isRecord(provenance.model) ? provenance.model : {};
  return {
    schema_version: schemaVersion,
    evaluation_id,
    evaluation_timestamp: snapshot.created_at,
    retrieved_timestamp: secondsOf(snapshot),
    source_metadata: {
      source_name: "periodic-eval",
      source_type: "evaluation_run",
      source_organization_name: model_id.split("/")[0],
      evaluator_relationship: "first_party",
      additional_details: details({
        ...metadataOf(snapshot),
        training_undisturbed: undisturbed([snapshot])?.answer,
      }),
    },
    eval_library: libraryOf(snapshot),
    model_info: {
      name: model_id,
      id: model_id,
      developer: model_id.split("/")[0],
      inference_engine: { name: typeof engine === "string" ? engine : "unknown" },
      additional_details: {
        ...details({ ...ofModel, phase: snapshot.phase, step: snapshot.step, weights }),
        deployment_type: "self_deployed",
        model_availability: "unknown",
      },
    },
    evaluation_results: metrics.map(([name, metric]) => resultOf(name, metric, snapshot)),
  };
}

function resultOf(name: string, metric: KnownMetric, snapshot: Snapshot) {
  const { value, n, stderr, ci95, estimand, unit, higher_is_better: isHigherBetter, range } = metric;
  const [metricName, ...groups] = name.split("/");
  const { temperature, top_p, max_tokens } = samplingOf(snapshot);
  return {
    evaluation_result_id: name,
    evaluation_name: [snapshot.evaluation, ...groups].join("."),
    source_data: sourceOf(snapshot),
    evaluation_timestamp: snapshot.created_at,
    metric_config: {
      metric_id:
        metricName === "accuracy" ? "accuracy" : `periodic-eval.${snapshot.evaluation}.${metricName}`,
      metric_name: metricName,
      metric_unit: unit === "share" ? "proportion" : unit,
      lower_is_better: isHigherBetter === false,
      score_type: "continuous",
      min_score: range?.[0] ?? "-Infinity",
      max_score: range?.[1] ?? "Infinity",
      additional_details: details({
        estimand,
        is_primary: name === snapshot.primary_metric,
        ...(isHigherBetter === null && { direction: "neither higher nor lower is better" }),
      }),
    },
    score_details: {
      score: value,
      details: details({ against_baseline: snapshot.paired.baseline?.[name] }),
      uncertainty: {
        ...(stderr !== null && { standard_error: { value: stderr } }),
        ...(ci95 !== null && {
          confidence_interval: { lower: ci95[0], upper: ci95[1], confidence_level: 0.95 },
        }),
        num_samples: n,
      },
    },
    ...(max_tokens !== undefined && {
      generation_config: { generation_args: { temperature, top_p, max_tokens } },
    }),
  };
}

function sourceOf(snapshot: Snapshot) {
  const { items, items_hash } = snapshot.provenance;
  const dataset = datasetOf(snapshot);
  if (dataset === null)
    return {
      dataset_name: snapshot.evaluation,
      source_type: "other",
      additional_details: details({ items, items_hash }),
    };
  return {
    dataset_name: dataset.hub.split("/").at(-1),
    source_type: "hf_dataset",
    hf_repo: dataset.hub,
    hf_split: dataset.split,
    additional_details: details({ config: dataset.config, commit: dataset.commit, items, items_hash }),
  };
}

/** Returns the line of an answer, with its first score; null without one. All scores are in its metadata. */
export function lineOf(sample: MeasuredSample, snapshot: Snapshot, identity: Identity): string | null {
  const { choices, text, question, prompt, persona, flags, scores, judge } = sample;
  const [name, value] = scores.find(([, score]) => typeof score !== "string") ?? [];
  if (name === undefined || value === undefined) return null;
  const textOf = (label: string) => choices?.texts?.[choices.labels.indexOf(label)] ?? label;
  const predicted = choices?.predicted ?? null;
  const input = {
    raw: wellFormed(question ?? prompt ?? ""),
    reference: choices === null ? [] : [wellFormed(textOf(choices.gold))],
  };
  // A flag such as "misaligned" is set for a bad answer; a grade in words is true for a good one.
  const isFlag = snapshot.answer_fields?.flags?.some((flag) => flag.name === name) === true;
  const full = snapshot.metrics[name]?.range?.[1] ?? 1;
  const isCorrect = typeof value === "number" ? value >= full : value !== isFlag;
  return wellFormedJson({
    schema_version: schemaVersion,
    ...identity,
    evaluation_name: snapshot.evaluation,
    evaluation_result_id: resultIdOf(name, snapshot),
    sample_id: sample.epoch === 1 ? sample.item : `${sample.item}#${sample.sample}`,
    sample_hash: sha256(pythonJson(input)),
    interaction_type: "single_turn",
    input: { ...input, formatted: prompt, choices: choices?.texts ?? null },
    output: { raw: [text ?? (predicted === null ? "" : textOf(predicted))] },
    answer_attribution:
      predicted === null
        ? []
        : [
            {
              turn_idx: 0,
              source: "output.raw",
              extracted_value: textOf(predicted),
              extraction_method: "log_likelihood",
              is_terminal: true,
            },
          ],
    evaluation: { score: Number(value), is_correct: isCorrect },
    metadata: details({
      score: name,
      ...(persona !== null && { persona }),
      flags,
      ...(judge !== null && { judge }),
      ...Object.fromEntries(scores),
    }),
  });
}

/** Returns the metric that a score is one answer of: the metric of its name, or for `correct` the share of right answers. */
function resultIdOf(score: string, { metrics, primary_metric: primary }: Snapshot): string | undefined {
  if (metrics[score]?.value != null) return score;
  const metric = primary === null ? undefined : metrics[primary];
  const isShare = metric?.unit === "share" && metric.higher_is_better === true && metric.value !== null;
  return score === "correct" && isShare ? primary! : undefined;
}

/** Returns the text of Python's `json.dumps(…, sort_keys=True, separators=(",", ":"))`, of which the schema's authors take the hash. */
const pythonJson = (input: { readonly raw: string; readonly reference: readonly string[] }): string =>
  JSON.stringify(input).replaceAll(/[\u007f-\uffff]/g, escaped);
