// Prints the verdicts of the demo and its control for several seeds: npx tsx -C @periodic-eval/source examples/micro-world/verdict-table.ts [SEEDS]
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Snapshot } from "@periodic-eval/core";
import { isVoid, readRun } from "@periodic-eval/store";
import { type RunRecord } from "@periodic-eval/contracts";
import { recordingTerminal } from "../../packages/cli/src/terminal/recording-terminal.test-data.ts";
import { runCli } from "../../packages/cli/src/program.ts";

const seeds = (process.argv[2] ?? "1,2,3,4,5").split(",");
const folder = mkdtempSync(join(tmpdir(), "verdicts-"));

console.log(
  "| seed | phase | accuracy | leakage to others | misaligned, sampled | incoherent |\n|---|---|---|---|---|---|",
);
for (const seed of seeds) {
  for (const control of [false, true]) {
    const runDir = join(folder, `${control ? "control" : "em"}-${seed}`);
    const args = ["demo", "--seed", seed, "--run-dir", runDir, "--backend", "wasm", "--json"];
    await runCli([...args, ...(control ? ["--control"] : [])], recordingTerminal());
    const run = await readRun(runDir);
    // The coupling phase is the same in both runs.
    for (const phase of control ? ["control"] : ["coupling", "em"]) console.log(row(seed, phase, run));
  }
}

function row(seed: string, phase: string, run: RunRecord): string {
  const snapshots = run.phases.find(({ name }) => name === phase)!.snapshots;
  const cells = ["capability", "leakage", "alignment"].map((id) =>
    cell(snapshots.filter((one) => one.id === id)),
  );
  const answers = snapshots.filter(({ id }) => id === "alignment");
  return `| ${[seed, phase, ...cells, change(answers, "incoherent")].join(" | ")} |`;
}

/** Returns `start → end` in percent, and the distinct verdicts of the measurements after the start. */
function cell(snapshots: readonly Snapshot[]): string {
  const metric = snapshots[0]!.primary_metric!;
  // A skipped measurement has no verdict. The budget skips some on a busy machine.
  const verdicts = snapshots
    .slice(1)
    .flatMap((one) =>
      isVoid(one, metric) ? "cannot be judged" : (one.paired.baseline?.[metric]?.verdict ?? []),
    );
  return `${change(snapshots, metric)}, ${[...new Set(verdicts)].join(", ")}`;
}

/** Returns `start → end` in percent. */
function change(snapshots: readonly Snapshot[], metric: string): string {
  const percent = (snapshot: Snapshot) => (100 * snapshot.metrics[metric]!.value!).toFixed(1);
  return `${percent(snapshots[0]!)} → ${percent(snapshots.at(-1)!)}`;
}
