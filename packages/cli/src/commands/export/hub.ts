import { dirname, join } from "node:path";
import { makeFolder, undisturbed, writeFileAtomic } from "@periodic-eval/store";
import type { Snapshot } from "@periodic-eval/contracts";
import { stringify } from "yaml";
import type { WriteFormat } from "./command.ts";
import { datasetOf, libraryOf, modelName, wellFormed } from "./measurement.ts";

/**
 * Writes what the page of a model on the Hugging Face hub shows, from the last complete measurement of each callback:
 * `.eval_results/<id>.yaml` for questions of a dataset on the hub (https://huggingface.co/docs/hub/eval-results), and `model-index.yaml`,
 * the block `model-index` of the model card, for all.
 */
export const writeHubResults: WriteFormat = async (measurements, { folder, model }) => {
  const last = new Map<string, Snapshot>();
  for await (const { snapshot } of measurements)
    if (snapshot.status === "complete" && snapshot.on === "model" && primaryOf(snapshot) !== null)
      last.set(snapshot.id, snapshot);
  const files: string[] = [];
  const write = async (name: string, content: unknown) => {
    await makeFolder(dirname(join(folder, name)));
    await writeFileAtomic(join(folder, name), stringify(content, { lineWidth: 0 }));
    files.push(name);
  };
  for (const [id, snapshot] of last) {
    const dataset = datasetOf(snapshot);
    if (dataset === null) continue;
    await write(`.eval_results/${id}.yaml`, [
      {
        dataset: { id: dataset.hub, task_id: dataset.config, revision: dataset.commit },
        value: primaryOf(snapshot)!.value,
        date: snapshot.created_at,
        notes: notesOf(snapshot),
      },
    ]);
  }
  const snapshots = [...last.values()];
  if (snapshots.length > 0) {
    const name = model ?? modelName(snapshots[0]!);
    await write("model-index.yaml", { "model-index": [{ name, results: snapshots.map(resultOf) }] });
  }
  return files;
};

/** Returns the primary metric; null without a value. */
function primaryOf({ metrics, primary_metric: primary }: Snapshot) {
  const metric = primary === null ? undefined : metrics[primary];
  return metric === undefined || metric.value === null ? null : { ...metric, value: metric.value };
}

function notesOf(snapshot: Snapshot): string {
  const { evaluation, evaluation_version, phase, step, sha256, provenance } = snapshot;
  const { name, version } = libraryOf(snapshot);
  const { n, ci95 } = primaryOf(snapshot)!;
  return [
    `${name} ${version}, ${evaluation} ${evaluation_version}, ${phase} step ${step}, n = ${n}`,
    ...(ci95 === null ? [] : [`95 % interval ${ci95.join(" to ")}`]),
    `training undisturbed: ${undisturbed([snapshot])!.answer}`,
    `provenance ${provenance.hash}, snapshot ${sha256}`,
  ].join("; ");
}

/** An entry of the model index (https://github.com/huggingface/hub-docs/blob/main/modelcard.md). */
function resultOf(snapshot: Snapshot) {
  const {
    evaluation,
    id,
    primary_metric: primary,
    receipt,
    provenance,
    phase,
    step,
    weights,
    sha256,
  } = snapshot;
  const dataset = datasetOf(snapshot);
  const { value, ...metric } = primaryOf(snapshot)!;
  return {
    task: { type: "text-generation", name: wellFormed(evaluation) },
    dataset:
      dataset === null
        ? { name: `${evaluation} (custom questions)`, type: "custom" }
        : {
            name: dataset.hub,
            type: dataset.hub,
            config: dataset.config,
            split: dataset.split,
            revision: dataset.commit,
          },
    metrics: [
      {
        type: primary,
        name: `${id} ${primary}`,
        value,
        args: { ...metric, phase, step, weights, snapshot_sha256: sha256, receipt, provenance },
      },
    ],
  };
}
