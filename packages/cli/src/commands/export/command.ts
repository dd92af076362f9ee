import { join } from "node:path";
import type { RunRecord, Snapshot } from "@periodic-eval/contracts";
import { rowsPlace } from "@periodic-eval/dashboard";
import { makeFolder, nodeFiles, readRows, readRun } from "@periodic-eval/store";
import { Option, type Command } from "commander";
import { noSnapshot, warnOfProblems } from "../../run/read-runs.ts";
import { jsonText, type Terminal } from "../../terminal/terminal.ts";
import { samplesOf, type Measurement } from "./measurement.ts";

/** Writes the files of a format into a folder, and returns their paths in it. */
export type WriteFormat = (
  measurements: AsyncIterable<Measurement>,
  options: { readonly run: RunRecord; readonly folder: string; readonly model?: string },
) => Promise<WrittenFiles>;

interface WrittenFiles {
  readonly files: readonly string[];
  /** The callbacks that a format of one result per callback leaves out, and why. */
  readonly leftOut?: readonly { readonly id: string; readonly reason: string }[];
}

/** Each imports its format only when it is written. */
const formats: Readonly<Record<string, () => Promise<WriteFormat>>> = {
  inspect: async () => (await import("./inspect.ts")).writeInspectLogs,
  "every-eval-ever": async () => (await import("./every-eval-ever.ts")).writeEveryEvalEver,
  hub: async () => (await import("./hub.ts")).writeHubResults,
};

interface ExportOptions {
  readonly to: string;
  readonly out?: string;
  readonly model?: string;
  readonly json: boolean;
}

const help = `
inspect writes an .eval log per measurement, for 'inspect view'; every-eval-ever
writes data/ of its datastore; hub writes .eval_results/ and model-index.yaml of a
model's repository, from the measurement of each callback at the end of training.
It names each callback that it leaves out, and why: one that cannot be judged, has
no value, or was not measured at the end.
Measurements that were skipped, and those that are not graded yet, are left out.`;

/** `export`: writes a run in the formats of Inspect, of Every Eval Ever and of the Hugging Face hub. It changes nothing in the run. */
export function addExport(program: Command, terminal: Terminal): void {
  program
    .command("export")
    .description("write a run in the format of Inspect, Every Eval Ever or the Hugging Face hub")
    .argument("<run-dir>", "a run's folder")
    .addOption(new Option("--to <format>", "the format").choices(Object.keys(formats)).makeOptionMandatory())
    .option("--out <folder>", "where to write (default: exports/<format> in the run)")
    .option("--model <name>", "the trained model's owner/name on the hub (default: the run's name of it)")
    .option("--json", "print one JSON document", false)
    .addHelpText("after", help)
    .action(async (runDir: string, { to, out, json, ...options }: ExportOptions) => {
      // The rows are verified when they are read.
      const run = await readRun(runDir, undefined, { rows: false });
      warnOfProblems(run, terminal);
      const all = run.phases.flatMap(({ snapshots }) => snapshots);
      if (all.length === 0) throw noSnapshot(runDir);
      const exported = all.filter(({ status }) => status !== "skipped" && status !== "grading");
      const folder = out ?? join(runDir, "exports", to);
      await makeFolder(folder);
      const write = await formats[to]!();
      const { files, leftOut = [] } = await write(measurementsOf(run, exported), { run, folder, ...options });
      const uncounted = all.length - exported.length;
      if (json) {
        const counts = { measurements: exported.length, left_out: uncounted };
        const results = { ...counts, left_out_callbacks: leftOut, files };
        return terminal.out(jsonText({ run_dir: runDir, format: to, folder, ...results }));
      }
      for (const { id, reason } of leftOut)
        terminal.out(terminal.colours.yellow(`Left out: ${id}: ${reason}`));
      const notes = uncounted === 0 ? "" : `, ${uncounted} skipped or not graded left out`;
      terminal.out(`${folder}: ${counted(files, "file")} of ${counted(exported, "measurement")}${notes}`);
    });
}

const counted = ({ length }: readonly unknown[], noun: string): string =>
  `${length} ${noun}${length === 1 ? "" : "s"}`;

/** Reads one measurement at a time. @throws PeriodicEvalError `store` for damaged rows. */
async function* measurementsOf(run: RunRecord, snapshots: readonly Snapshot[]): AsyncGenerator<Measurement> {
  for (const snapshot of snapshots) {
    const { snapshotFile, samples } = rowsPlace(run, snapshot);
    const rows = await readRows(snapshotFile, samples, nodeFiles);
    yield { snapshot, runDir: run.runDir, samples: samplesOf(snapshot, rows) };
  }
}
