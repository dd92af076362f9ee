import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lockText } from "../../../testing/src/lock-file.test-data.ts";
import { nodeFiles, takeLock, type FileReader } from "@periodic-eval/store";
import { writeSampleFeedback } from "../feedback/sample-feedback.test-data.ts";
import { sampleResults } from "../results/sample-results.test-data.ts";
import type { ResultsRun } from "../results/paired-change.ts";
import { writeSampleRun } from "../run/sample-run.test-data.ts";
import type { ReadResults } from "./read-run.ts";

/** Reads results like the command line, without its checks. */
export async function readResults(file: string, fs: FileReader): Promise<ReadResults> {
  const { runs } = JSON.parse(await fs.read(file)) as { runs: readonly ResultsRun[] };
  return { runs, samples: [] };
}

/** A string in every file outside the root, in fields that a page would show. */
export const secret = "SECRET-outside";

export interface SampleRoot {
  /** The folder that contains the root and the files outside it. */
  readonly above: string;
  readonly root: string;
  /** Runs, newest first. */
  readonly runs: readonly string[];
  /** Releases the lock of the running run. */
  readonly release: () => Promise<void>;
}

/** Writes runs of all kinds and states below `<above>/root`. */
export async function writeSampleRoot(): Promise<SampleRoot> {
  const above = await mkdtemp(join(tmpdir(), "served-"));
  const root = join(above, "root");
  const at = (...names: string[]) => join(root, ...names);
  for (const run of ["running", "dead", "seeds/finished"]) await writeSampleRun(at(run));
  const { release } = await takeLock(at("running", "periodic_eval", ".lock"), nodeFiles);
  await writeFile(at("dead", "periodic_eval", ".lock"), lockOfEndedProcess());
  await mkdir(at("seeds", "stopped"), { recursive: true });
  await writeSampleRun(at("seeds", "stopped"), (snapshot) => ({
    ...snapshot,
    max_steps: 600,
    pct: snapshot.step / 6,
  }));
  await writeSampleFeedback(at("feedback"));
  await mkdir(at("results"));
  await writeFile(at("results", "metrics.json"), JSON.stringify({ schema_version: 1, runs: sampleResults }));
  await mkdir(at("begun", "polite"), { recursive: true });
  await writeFile(at("begun", "polite", "metadata.json"), "{}");
  await writeFile(at("begun", ".feedback.lock"), lockOfEndedProcess());
  await writeFile(at("notes.txt"), "no run");
  const written = {
    running: "running/periodic_eval/index.jsonl",
    feedback: "feedback/summary.json",
    dead: "dead/periodic_eval/index.jsonl",
    results: "results/metrics.json",
    "seeds/finished": "seeds/finished/periodic_eval/index.jsonl",
    "seeds/stopped": "seeds/stopped/periodic_eval/index.jsonl",
    begun: "begun",
  };
  for (const [age, file] of Object.values(written).entries()) {
    const time = new Date(Date.UTC(2026, 5, 28 - age, 12));
    await utimes(at(file), time, time);
  }
  return { above, root, runs: Object.keys(written), release };
}

/** Returns the lock of a process on this machine that has ended. */
function lockOfEndedProcess(): string {
  const { pid } = spawnSync(process.execPath, ["--version"]);
  return lockText({ pid, process_start: "1" });
}

/** Writes files outside the root and links that lead to them: links to folders, to files of runs, and to other links. */
export async function writeOutside({ above, root }: SampleRoot): Promise<void> {
  const outside = join(above, "outside");
  await writeSampleRun(join(outside, "run"), (snapshot) => ({
    ...snapshot,
    reason: secret,
    status: "partial",
  }));
  await mkdir(join(outside, "rows"), { recursive: true });
  await writeFile(join(outside, "rows", "rows.jsonl"), `${JSON.stringify({ id: "1", text: secret })}\n`);
  await writeFile(join(outside, "secret.txt"), secret);
  const link = (to: string, ...from: string[]) => symlink(to, join(root, ...from));
  await link("../outside", "link-out");
  await link("../outside/run", "link-out-run");
  await link("link-out", "chain");
  await link(outside, "absolute-link");
  await link("/etc", "etc-link");
  await link("loop", "loop");
  await link("nowhere", "dangling");
  await link("seeds/finished", "link-in");
  await writeSampleRun(join(root, "with-links"), (snapshot) => ({ ...snapshot, id: "own" }));
  const own = ["with-links", "periodic_eval"];
  await link("../../../outside/run/periodic_eval/em", ...own, "linked-phase");
  await link(
    "../../../../outside/run/periodic_eval/em/capability_step_60.json",
    ...own,
    "em",
    "linked_step_60.json",
  );
  await link("/etc/passwd", ...own, "em", "passwd_step_1.json");
  await link("../../../../outside/rows/rows.jsonl", ...own, "em", "own_step_60.samples.jsonl");
}
