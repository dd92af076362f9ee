import { isRecord } from "@periodic-eval/contracts/options";
import { PeriodicEvalError } from "@periodic-eval/core";
import type { Hello } from "@periodic-eval/live";
import { nodeFiles, readRun } from "@periodic-eval/store";

/**
 * Refuses a training that begins in a folder with measurements of another model, which it would supersede. A training that resumes may
 * load its model under another name.
 *
 * @throws PeriodicEvalError `config`.
 */
export async function refuseOtherRun({
  run_dir: runDir,
  phase,
  step,
  model,
  tokenizer,
}: Hello): Promise<void> {
  if (step > 0) return;
  // The session reports a folder that cannot be read.
  const run = await readRun(runDir, nodeFiles, { rows: false }).catch(() => null);
  const snapshots = run?.phases.find(({ name }) => name === phase)?.snapshots ?? [];
  for (const { provenance } of snapshots.toReversed()) {
    const name = isRecord(provenance.model) ? provenance.model.name : null;
    if (typeof name !== "string" || provenance.tokenizer === null) continue;
    if (name === model.name && provenance.tokenizer === tokenizer.fingerprint) return;
    const other = name === model.name ? " with another tokenizer" : "";
    throw new PeriodicEvalError({
      code: "config",
      where: "run_dir",
      got: `${runDir}, which holds measurements of ${name}${other}, for a training of ${model.name}`,
      expected: "a new folder, or one of the same model",
      fix: "Choose another run_dir, or delete this one.",
    });
  }
}
