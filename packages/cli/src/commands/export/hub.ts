import { dirname, join } from "node:path";
import { makeFolder, undisturbed, voidReason, writeFileAtomic } from "@periodic-eval/store";
import type { RunRecord, Snapshot } from "@periodic-eval/contracts";
import { isAtEnd } from "@periodic-eval/dashboard";
import { stringify } from "yaml";
import type { WriteFormat } from "./command.ts";
import { datasetOf, libraryOf, modelName, wellFormed } from "./measurement.ts";

/**
 * Writes what the page of a model on the Hugging Face hub shows, from the measurement of each callback at the end of training:
 * `.eval_results/<id>.yaml` for questions of a dataset on the hub (https://huggingface.co/docs/hub/eval-results), and `model-index.yaml`,
 * the block `model-index` of the model card, for all. Leaves out callbacks without a result of the trained model, with the reason.
 */
export const writeHubResults: WriteFormat = async (measurements, { run, folder, model }) => {
  // Verifies the rows.
  for await (const _ of measurements);
  const ofModel = run.phases.flatMap(({ snapshots }) => snapshots).filter(({ on }) => on === "model");
  const last = [...new Map(ofModel.map((snapshot) => [snapshot.id, snapshot]))];
  const reasons = last.map(([id, snapshot]) => [id, reasonToLeaveOut(run, snapshot)] as const);
  const leftOut = reasons.flatMap(([id, reason]) => (reason === null ? [] : [{ id, reason }]));
  const written = last.filter(([id]) => !leftOut.some((left) => left.id === id));
  const files: string[] = [];
  const write = async (name: string, content: unknown) => {
    await makeFolder(dirname(join(folder, name)));
    await writeFileAtomic(join(folder, name), stringify(content, { lineWidth: 0 }));
    files.push(name);
  };
  for (const [id, snapshot] of written) {
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
  const snapshots = written.map(([, snapshot]) => snapshot);
  if (snapshots.length > 0) {
    const name = model ?? modelName(snapshots[0]!);
    await write("model-index.yaml", { "model-index": [{ name, results: snapshots.map(resultOf) }] });
  }
  return { files, leftOut };
};

/** Returns why the last measurement of a callback says nothing about the trained model; null if it does. */
function reasonToLeaveOut(run: RunRecord, snapshot: Snapshot): string | null {
  const { phase, step, max_steps: maxSteps, status, reason, primary_metric: primary } = snapshot;
  const length = maxSteps === null ? "" : ` of ${maxSteps}`;
  const ofPhase = run.phases.find(({ name }) => name === phase)!;
  if (!isAtEnd(snapshot, ofPhase))
    return `its last measurement is at step ${step}${length} of ${phase}, not at the end`;
  const later = phaseAfter(run, phase);
  if (later !== null) return `its last measurement is at the end of ${phase}, and ${later} was trained later`;
  if (status !== "complete") {
    const state = status === "grading" ? "not graded yet" : status;
    return `its measurement at the end is ${state}${reason === null ? "" : `: ${reason}`}`;
  }
  if (primary === null) return "it has no primary metric";
  const why = voidReason(snapshot, primary);
  if (why !== null) return `its measurement at the end cannot be judged: ${why}`;
  return primaryOf(snapshot) === null ? `its measurement at the end has no value of ${primary}` : null;
}

/** Returns a phase that was trained after another one, also one that measured nothing; null if none was. */
function phaseAfter({ phases, closings }: RunRecord, phase: string): string | null {
  const measured = phases[phases.findIndex(({ name }) => name === phase) + 1]?.name;
  const at = closings.findIndex((closing) => closing.phase === phase);
  const closed = at === -1 ? undefined : closings.slice(at + 1).find(({ step }) => step > 0)?.phase;
  return measured ?? closed ?? null;
}

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
