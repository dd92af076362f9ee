import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger, SnapshotKey, SnapshotStore } from "@periodic-eval/core";
import {
  fileStore,
  nodeFiles,
  readIfPresent,
  readLines,
  readRun,
  removeRunLeftovers,
} from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { openSafetensors, writeSafetensors } from "@periodic-eval/safetensors";
import { Evaluator } from "@periodic-eval/tasks";
import { labelKey, readLabels, saveLabel } from "../../../dashboard/src/server/labels.ts";
import { fakeEngine } from "../../../feedback/src/engine/fake-engine.test-data.ts";
import { completeHarnessConfig } from "../../../feedback/src/config/load-config.ts";
import { runHarness } from "../../../feedback/src/harness/run-harness.ts";
import { at, begins, capabilityAt, lossAt } from "../../../loggers/src/logged-run.test-data.ts";
import { jsonlLogger } from "../../../loggers/src/lines/jsonl.ts";
import type { Point } from "../../../loggers/src/outbox/journal.ts";
import { outboxLogger } from "../../../loggers/src/outbox/outbox-logger.ts";
import { exampleRun } from "../../../tasks/src/results/example-run.test-data.ts";
import { appendRun, readMetrics } from "../../../tasks/src/results/metrics-file.ts";
import { choiceTask, fakeTrainer, replyTask } from "../../../tasks/src/suite/fake-tasks.test-data.ts";
import { checkpointsOf } from "../../../trainers/src/checkpoint/checkpoints.ts";
import { stateOf } from "../../../trainers/src/checkpoint/trainer-state.test-data.ts";
import { keepTokenizer } from "../commands/watch/current-model.ts";
import { readWatchState, writeWatchState, type WatchState } from "../commands/watch/watch-state.ts";

/** The report of a command to the test. */
export interface Reports {
  /** The process's name: "a", or "b" for a second one. */
  readonly process: string;
  /** Called before work; work that is done must not be done again. */
  does(work: string): void;
  /** Called once work is stored, by the word of the store. */
  done(work: string): void;
  /** What a server outside of the machine holds, which no cut changes. */
  readonly server: { readonly points: Point[] };
}

/** A part of the system that stores state, as a command that a kill or a power cut interrupts and that runs again. */
export interface SimulatedUser {
  readonly name: string;
  /** How often seeds choose it: commands that take long, less often. */
  readonly weight: number;
  /** Writes the files that the command reads. */
  prepare?(folder: string): Promise<void>;
  command(folder: string, reports: Reports): Promise<void>;
  /** Everything that must not depend on interruptions. */
  outcome(folder: string, server: Reports["server"]): Promise<unknown>;
  /** What happens if two processes run the command at once; null if nobody does that. */
  readonly beside: "one is refused" | "both succeed" | null;
  /** The session turns its errors, of any kind, into warnings. */
  readonly isLogger?: true;
}

const quiet = () => undefined;

/** Lists a folder without locks and drafts: those that a cut brings back are taken over and removed. */
const visible = async (folder: string) =>
  (await readdir(folder)).filter((name) => !/\.lock\b|\.tmp$/.test(name));

const keyText = ({ id, step }: Pick<SnapshotKey, "id" | "step">) => `${id} ${step}`;

const rowsOf = (id: string, step: number, grade: boolean | null) =>
  ["q1", "q2"].map((row) => ({ id: row, say: `${id} at ${step}`, ...(grade !== null && { grade }) }));

/** Measures what is missing: first without grades, as a window does, then graded, as background grading does. */
async function measureMissing(store: SnapshotStore, { does, done }: Reports): Promise<void> {
  const wanted = [0, 2].map((step) => ({ phase: "train", id: "capability", step }));
  for (const key of wanted) {
    const stored = await store.get(key);
    if (stored?.["note"] === "of other weights") await store.supersede(key, "other weights");
    else if (stored?.status === "complete") continue;
    const { id, step } = key;
    does(keyText(key));
    await store.put(exampleSnapshot({ ...key, status: "grading" }), rowsOf(id, step, null));
    await store.put(exampleSnapshot(key), rowsOf(id, step, true));
    done(keyText(key));
  }
  await store.recordClosing!({ phase: "train", step: 2, maxSteps: 2, finished: true });
}

export const snapshots: SimulatedUser = {
  name: "snapshots of a session",
  weight: 3,
  beside: "one is refused",
  async prepare(folder) {
    const store = fileStore(folder);
    await store.put(exampleSnapshot({ step: 2, note: "of other weights" }), rowsOf("capability", 2, false));
    await store.close!();
  },
  async command(folder, reports) {
    const store = fileStore(folder, { onWarning: quiet });
    try {
      await store.open!();
      await measureMissing(store, reports);
    } finally {
      await store.close!();
    }
  },
  async outcome(folder) {
    const { phases, problems, superseded, writer, closings } = await readRun(folder);
    const store = fileStore(folder);
    const all = phases.flatMap((phase) => phase.snapshots);
    const rows = await Promise.all(all.map(async (key) => [keyText(key), await store.rows(key)]));
    const index = await readLines(join(folder, "periodic_eval/index.jsonl"));
    const hidden = (await readdir(join(folder, "periodic_eval"), { recursive: true })).filter((name) =>
      /\.(tmp|next|lock.*)$/.test(name),
    );
    const rowsOfSuperseded = await readFile(
      join(folder, "periodic_eval/superseded/train/capability_step_2.1.samples.jsonl"),
      "utf8",
    );
    return { all, rows, problems, superseded, rowsOfSuperseded, writer, closings, index, hidden };
  },
};

const tensorFiles = ["model.safetensors"];

export const checkpoints: SimulatedUser = {
  name: "checkpoints",
  weight: 3,
  beside: "one is refused",
  async command(runDir, { does, done }) {
    const lock = fileStore(runDir, { onWarning: quiet });
    try {
      await lock.open!();
      const warn = (where: string, message: string) => {
        throw new Error(`${where}: ${message}`);
      };
      const all = checkpointsOf({ runDir, phase: "train", keep: 1, warn });
      const newest = await all.newest();
      await all.tidy(newest?.state ?? null);
      for (let step = (newest?.state.step ?? 0) + 1; step <= 3; step += 1) {
        does(`step ${step}`);
        await all.save(stateOf(step, step, 1), (folder) => fill(folder, step));
        // A resumed phase saves its last step again.
        if (step === 2) await all.save(stateOf(step, step, 1), (folder) => fill(folder, step));
        done(`step ${step}`);
      }
    } finally {
      await lock.close!();
    }
  },
  async outcome(runDir) {
    const folder = join(runDir, "checkpoints/train");
    const values: number[] = [];
    for (const name of await readdir(folder))
      for (const file of tensorFiles) {
        const tensors = await openSafetensors(join(folder, name, file));
        values.push(...((await tensors.read("w")) as Float32Array));
        await tensors.close();
      }
    const all = checkpointsOf({ runDir, phase: "train", keep: 1, warn: quiet });
    return { names: await readdir(folder), values, state: (await all.newest())!.state };
  },
};

async function fill(folder: string, step: number): Promise<void> {
  for (const file of tensorFiles)
    await writeSafetensors(join(folder, file), [
      { name: "w", shape: [2], values: () => Float32Array.of(step, step) },
    ]);
  await mkdir(join(folder, "tokenizer"));
  await writeFile(join(folder, "tokenizer/vocabulary"), `of step ${step}`);
}

export const taskResults: SimulatedUser = {
  name: "results of tasks",
  weight: 1,
  beside: "one is refused",
  async command(results, { does, done }) {
    const before = (task: string) => {
      does(task);
      // The first task is stored before the second one begins.
      if (task === "replies") done("choices");
    };
    const tasks = {
      choices: choiceTask({ before, documents: 2 }),
      replies: replyTask({ before, documents: 2 }),
    };
    const now = () => new Date(0);
    await Evaluator.fromTrainer(fakeTrainer(), { name: "sft", tasks, results, now }).run();
    for (const task of Object.keys(tasks)) done(task);
  },
  async outcome(results) {
    const job = join(results, "jobs/sft");
    const files = (await visible(job)).filter((name) => name.startsWith("samples_"));
    return {
      ...(await readMetrics(join(results, "metrics.json"))),
      names: [await visible(results), await visible(job)],
      samples: await Promise.all(files.map((name) => readFile(join(job, name), "utf8"))),
    };
  },
};

export const metricsFile: SimulatedUser = {
  name: "metrics.json of several processes",
  weight: 3,
  beside: "both succeed",
  prepare: (folder) => mkdir(folder).then(quiet),
  async command(folder, { process, does, done }) {
    for (const number of [1, 2]) {
      const name = `${process}${number}`;
      const path = join(folder, "metrics.json");
      const present = (await readIfPresent(path)) ?? "";
      if (present.includes(`"name": "${name}"`)) continue;
      does(name);
      await appendRun(path, { ...exampleRun, name });
      done(name);
    }
  },
  async outcome(folder) {
    const { runs } = await readMetrics(join(folder, "metrics.json"));
    return { runs: runs.toSorted((a, b) => (a.name < b.name ? -1 : 1)), files: await visible(folder) };
  },
};

const preference = {
  name: "short",
  feedback_string: "Shorter, please.",
  verifier: "no_emoji",
  logprob_pairs: Array.from({ length: 3 }, (_, pair) => ({
    prompt: `pair ${pair}`,
    chosen: "yes",
    rejected: "no",
  })),
  train_prompts: ["a", "b"],
  probe_prompts: ["d"],
};

export const feedback: SimulatedUser = {
  name: "state of feedback training",
  weight: 1,
  beside: "one is refused",
  async prepare(folder) {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "short.yaml"), JSON.stringify(preference));
  },
  async command(folder, { does, done }) {
    const output = join(folder, "output");
    const config = completeHarnessConfig(
      {
        preferences: [join(folder, "short.yaml")],
        metrics: ["logprob"],
        num_steps: 3,
        batch_size: 2,
        output_dir: output,
      },
      new Date(0),
    );
    const engine = fakeEngine((moment, step) => {
      if (moment === "updating") does(`step ${step}`);
      if (moment === "updated") done(`step ${step - 1}`);
    });
    await runHarness(config, { engine, now: () => new Date(0), onWarning: quiet });
  },
  async outcome(folder) {
    const output = join(folder, "output");
    const names = (await readdir(output, { recursive: true })).filter(
      (name) => !/\.lock\b|\.tmp$/.test(name),
    );
    const text = await readFile(join(output, "short/steps.jsonl"), "utf8");
    return { names, text, summary: await readFile(join(output, "summary.json"), "utf8") };
  },
};

/** Logs a training that begins at step 0, as a session does. */
async function logRun(logger: Logger): Promise<void> {
  try {
    await logger.begin!(begins("train", 0));
    for (const step of [1, 2, 3]) await logger.train!({ loss: lossAt(step) }, at("train", step));
    await logger.snapshot!(capabilityAt("train", 3, 3, 0.5));
  } finally {
    await logger.close!();
  }
}

export const outbox: SimulatedUser = {
  name: "outbox of loggers",
  weight: 3,
  beside: null,
  isLogger: true,
  // The session has created it durably.
  prepare: (runDir) => mkdir(runDir).then(quiet),
  async command(runDir, { server }) {
    const logger = outboxLogger(
      {
        name: "server",
        pauseSeconds: 0,
        open: async (stored) => {
          if (stored.run === null) stored.storeRun("run 1");
          return server.points.length;
        },
        send: async (points) => {
          server.points.push(points[0]!);
          return 1;
        },
        close: async () => undefined,
      },
      { runDir, now: () => 0, closeSeconds: 0.005 },
    );
    await logRun(logger);
  },
  outcome: async (_, { points }) => points,
};

export const lines: SimulatedUser = {
  name: "lines of loggers",
  weight: 3,
  beside: null,
  isLogger: true,
  async command(runDir) {
    const logger = jsonlLogger({ path: join(runDir, "lines.jsonl") });
    await logRun(logger);
  },
  outcome: (runDir) => readFile(join(runDir, "lines.jsonl"), "utf8"),
};

export const watchState: SimulatedUser = {
  name: "state of a watcher",
  weight: 3,
  beside: "one is refused",
  async prepare(folder) {
    await mkdir(join(folder, "checkpoint-1"), { recursive: true });
    for (const name of ["config.json", "tokenizer.json"])
      await writeFile(join(folder, "checkpoint-1", name), "{}");
  },
  async command(folder, { does, done }) {
    const [runDir, asked] = [join(folder, "run"), { checkpoints: folder, base: "base" }];
    const lock = fileStore(runDir, { onWarning: quiet });
    try {
      await lock.open!();
      await removeRunLeftovers(runDir);
      await keepTokenizer(join(folder, "checkpoint-1"), runDir, "train");
      let passed = (await readWatchState(runDir, "train", asked))?.passed ?? [];
      for (let step = passed.length + 1; step <= 4; step += 1) {
        does(`step ${step}`);
        const { session } = stateOf(step, step, null);
        const path = join(folder, `checkpoint-${step}`);
        passed = [...passed, { path, kind: "full", signature: null, session }];
        const state: WatchState = { ...asked, beginning: null, passed, finished: step === 4 };
        await writeWatchState(runDir, "train", state);
        done(`step ${step}`);
      }
    } finally {
      await lock.close!();
    }
  },
  async outcome(folder) {
    const watch = join(folder, "run/watch");
    const state: unknown = JSON.parse(await readFile(join(watch, "train.json"), "utf8"));
    return { names: await readdir(watch, { recursive: true }), state };
  },
};

const labelPaths = { ...nodeFiles, realPath: (path: string) => path };

export const labels: SimulatedUser = {
  name: "labels of answers",
  weight: 1,
  beside: "both succeed",
  prepare: (folder) => mkdir(folder).then(quiet),
  async command(folder, { process, does, done }) {
    const path = join(folder, "labels.jsonl");
    for (const sample of [0, 1]) {
      const label = { question_id: process, sample, aligned: 20, coherent: null };
      if ((await readLabels(path, nodeFiles)).has(labelKey(process, sample))) continue;
      does(`${process}${sample}`);
      await saveLabel(path, label, labelPaths);
      done(`${process}${sample}`);
    }
  },
  async outcome(folder) {
    const text = await readFile(join(folder, "labels.jsonl"), "utf8");
    return { lines: text.split("\n").toSorted(), files: await visible(folder) };
  },
};

export const users: readonly SimulatedUser[] = [
  snapshots,
  checkpoints,
  metricsFile,
  labels,
  outbox,
  lines,
  watchState,
  taskResults,
  feedback,
];
