import { basename, join, resolve } from "node:path";
import { writeFileAtomic, type OpenFile } from "@periodic-eval/store";
import { dataError } from "@periodic-eval/contracts/options";
import type { Snapshot } from "@periodic-eval/contracts";
import { strToU8, Zip, ZipDeflate } from "fflate";
import type { WriteFormat } from "./command.ts";
import {
  datasetOf,
  libraryOf,
  metadataOf,
  modelName,
  samplingOf,
  wellFormedJson,
  type MeasuredSample,
  type Measurement,
} from "./measurement.ts";

/** The version of Inspect's log format. */
const version = 2;

/** A ZIP file without the extension ZIP64, which fflate does not write, has at most 65,535 entries. */
const maxSamples = 65_000;

/**
 * Writes an `.eval` log of Inspect per measurement: a ZIP of `header.json`, `summaries.json` and one file per sample, as its `EvalLog`,
 * `EvalSampleSummary` and `EvalSample` describe (inspect_ai 0.3.285, `log/_log.py`, `log/_recorders/eval.py`).
 *
 * @throws PeriodicEvalError `data` for a measurement that no such file can hold.
 */
export const writeInspectLogs: WriteFormat = async (measurements, { folder, model }) => {
  const files: string[] = [];
  for await (const measurement of measurements) {
    const { snapshot, samples } = measurement;
    if (samples.length > maxSamples)
      throw dataError(
        `${snapshot.phase}/${snapshot.id} step ${snapshot.step}`,
        `${samples.length} answers`,
        `at most ${maxSamples} answers in a log of Inspect`,
        "Export the run --to every-eval-ever.",
      );
    const name = logName(snapshot);
    const entries = entriesOf(measurement, model ?? modelName(snapshot));
    await writeFileAtomic(join(folder, name), (file) => writeZip(file, entries, snapshot.created_at));
    files.push(name);
  }
  return { files };
};

/** The id of a measurement. Logs with one task id would be attempts at the same task. */
const taskId = ({ sha256, phase, id, step }: Snapshot): string =>
  sha256?.slice(0, 22) ?? `${phase}-${id}-${step}`.replaceAll("_", "-");

/** Inspect reads the task and its id from a log's name: `2026-01-01T00-00-00-000Z_em-capability-step-20_1f0c….eval`. */
const logName = (snapshot: Snapshot): string => {
  const { phase, id, step, created_at: created } = snapshot;
  const name = `${phase}-${id}-step-${step}`.replaceAll("_", "-");
  return `${created.replaceAll(/[:.]/g, "-")}_${name}_${taskId(snapshot)}.eval`;
};

function* entriesOf(
  { snapshot, runDir, samples }: Measurement,
  model: string,
): Generator<readonly [name: string, content: unknown]> {
  const { status, reason, created_at: created, timing } = snapshot;
  const evaluation = specOf(snapshot, runDir, samples, model);
  const plan = { name: "plan", steps: [{ solver: snapshot.evaluation, params: {} }], config: {} };
  yield ["_journal/start.json", { version, eval: evaluation, plan }];
  const summaries: object[] = [];
  for (const sample of samples) {
    const written = sampleOf(sample, snapshot, model);
    summaries.push(summaryOf(written));
    yield [`samples/${sample.id}_epoch_${sample.epoch}.json`, written];
  }
  yield ["summaries.json", summaries];
  const isFailed = status === "failed";
  yield [
    "header.json",
    {
      version,
      status: isFailed ? "error" : "success",
      eval: evaluation,
      plan,
      results: isFailed ? null : resultsOf(snapshot, samples),
      stats: {
        started_at: new Date(Date.parse(created) - 1000 * timing.total_seconds).toISOString(),
        completed_at: created,
        model_usage: {},
      },
      ...(isFailed && { error: { message: reason ?? "failed", traceback: "", traceback_ansi: "" } }),
    },
  ];
}

/** The `EvalSpec` of a measurement: what was measured, on which model, with tags for phase and step. */
function specOf(snapshot: Snapshot, runDir: string, samples: readonly MeasuredSample[], model: string) {
  const { phase, id, step, on, status, provenance } = snapshot;
  const dataset = datasetOf(snapshot);
  const { name, version: ofLibrary } = libraryOf(snapshot);
  const epochs = samples.reduce((most, { epoch }) => Math.max(most, epoch), 1);
  return {
    eval_id: taskId(snapshot),
    run_id: basename(resolve(runDir)),
    created: snapshot.created_at,
    task: `${phase}/${id}`,
    task_id: taskId(snapshot),
    task_version: snapshot.evaluation_version,
    task_display_name: `${id}, ${phase} step ${step}`,
    tags: [
      `phase:${phase}`,
      `step:${step}`,
      ...(on === "base" ? ["base"] : []),
      ...(status === "partial" ? ["partial"] : []),
    ],
    dataset: {
      name: dataset?.hub ?? snapshot.evaluation,
      ...(dataset !== null && { location: `hf:${dataset.hub}/${dataset.config}/${dataset.split}` }),
      samples: new Set(samples.map((sample) => sample.id)).size,
      shuffled: false,
    },
    model,
    model_args: provenance.model,
    model_generate_config: samplingOf(snapshot),
    config: { epochs },
    packages: { [name]: ofLibrary },
    metadata: metadataOf(snapshot),
  };
}

/**
 * The `EvalResults`: a score per metric, with its groups, standard error, interval and n. Unknown values are left out; their score
 * stays, because the first metric of the first score is the headline of a log that names none.
 */
function resultsOf({ metrics, evaluation, primary_metric: primary }: Snapshot, samples: readonly unknown[]) {
  const all = Object.entries(metrics);
  const scoreOf = (name: string): string => name.split("/")[0]!;
  const scores = [...new Set(all.map(([name]) => scoreOf(name)))].map((score) => {
    const ofScore = all.filter(([name]) => scoreOf(name) === score);
    const known = ofScore.filter(([, { value }]) => value !== null);
    // Traits have groups without a metric over all of them.
    const stderr = metrics[score]?.stderr ?? null;
    return {
      name: score,
      scorer: evaluation,
      scored_samples: metrics[score]?.n ?? Math.max(...ofScore.map(([, { n }]) => n)),
      params: {},
      metrics: Object.fromEntries([
        ...known.map(([name, { value, ...metadata }]) => [
          name,
          {
            ...(name === score ? { name } : { name: name.slice(score.length + 1), group: score }),
            value,
            params: {},
            metadata,
          },
        ]),
        ...(stderr === null ? [] : [["stderr", { name: "stderr", value: stderr, params: {} }] as const]),
      ]),
    };
  });
  const isKnown = primary !== null && metrics[primary]?.value != null;
  return {
    total_samples: samples.length,
    completed_samples: samples.length,
    scores,
    ...(isKnown && { headline: { scorer: evaluation, score: scoreOf(primary), metric: primary } }),
  };
}

/** The `EvalSample` of an answer. Grades are scores; the prompt with the chat template and all other fields are metadata. */
function sampleOf(sample: MeasuredSample, { metrics }: Snapshot, model: string) {
  const { id, epoch, question, prompt, text, choices, judge, scores, flags, persona, tokens, fields } =
    sample;
  const input = question ?? prompt ?? "";
  const completion = text ?? choices?.predicted ?? "";
  const answer = { role: "assistant", content: completion, source: "generate", model };
  // Inspect's viewer shows true in green and false in red.
  const isFault = (name: string, value: unknown) =>
    typeof value === "boolean" && metrics[name]?.higher_is_better !== true;
  const { prompt: input_tokens, generated: output_tokens } = Object.fromEntries(tokens);
  return {
    id,
    epoch,
    input,
    ...(choices?.texts && { choices: choices.texts }),
    target: choices?.gold ?? "",
    messages: [{ role: "user", content: input, source: "input" }, ...(completion === "" ? [] : [answer])],
    output: {
      model,
      choices: [{ message: answer, stop_reason: flags.includes("truncated") ? "max_tokens" : "stop" }],
      completion,
      ...(input_tokens !== undefined &&
        output_tokens !== undefined && {
          usage: { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens },
        }),
    },
    scores: Object.fromEntries(
      scores.map(([name, value]) => [
        name,
        {
          value:
            name === "correct" ? (value === true ? "C" : "I") : isFault(name, value) ? Number(value) : value,
          ...(name === "correct" && choices?.predicted && { answer: choices.predicted }),
          ...(judge !== null && { explanation: judge }),
        },
      ]),
    ),
    metadata: {
      item: sample.item,
      ...(persona !== null && { persona }),
      flags,
      ...(prompt !== null && { prompt }),
      ...(choices?.nats && { nats: choices.nats }),
      ...Object.fromEntries(fields),
    },
  };
}

/** The `EvalSampleSummary`, for which Inspect cuts texts. */
function summaryOf({ messages, output: _output, metadata, ...sample }: ReturnType<typeof sampleOf>) {
  const scores = Object.entries(sample.scores).map(([name, { explanation, ...score }]) => [
    name,
    explanation === undefined ? score : { ...score, explanation: cut(explanation) },
  ]);
  return {
    ...sample,
    input: cut(sample.input),
    scores: Object.fromEntries(scores),
    metadata: { item: cut(metadata.item), flags: metadata.flags },
    completed: true,
    message_count: messages.length,
  };
}

const cut = (text: string): string => (text.length > 1000 ? `${text.slice(0, 1000)}…` : text);

/** Writes entries as JSON into a ZIP file, one at a time. */
async function writeZip(
  file: Pick<OpenFile, "write">,
  entries: Iterable<readonly [name: string, content: unknown]>,
  created: string,
): Promise<void> {
  let chunks: Uint8Array[] = [];
  let waiting = 0;
  let written = 0;
  const zip = new Zip((error, chunk) => {
    if (error) throw error;
    chunks.push(chunk);
    waiting += chunk.length;
  });
  const flush = async () => {
    await file.write(Buffer.concat(chunks));
    written += waiting;
    [chunks, waiting] = [[], 0];
    if (written >= 2 ** 32) throw new Error("a log of more than 4 GiB");
  };
  for (const [name, content] of entries) {
    const entry = new ZipDeflate(name);
    entry.mtime = created;
    zip.add(entry);
    entry.push(strToU8(wellFormedJson(content)), true);
    if (waiting > 1_000_000) await flush();
  }
  zip.end();
  await flush();
}
