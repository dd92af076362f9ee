// Trains in a worker, so that the page stays responsive. The page sends requests and shows reports. The files of the run are in
// the browser's IndexedDB, so that the run continues after a reload; in memory where the browser allows no storage.
import { PeriodicEvalError, type Logger } from "@periodic-eval/core";
import {
  fetchFiles,
  openBrowserFiles,
  readFile,
  rm,
  writeFile,
  type BrowserFiles,
} from "@periodic-eval/store/browser";
import { hashFiles, readRun, undisturbed } from "@periodic-eval/store";
import { type RunRecord } from "@periodic-eval/contracts";
import { renderRun } from "@periodic-eval/dashboard/page";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { runPipeline, type TrainResult } from "@periodic-eval/trainers";
import { microWorldCallbacks, microWorldFiles } from "./callbacks.ts";
import type { Report, Request, RunEnd, Settings } from "./messages.ts";
import { phases, sharedConfig } from "./run-config.ts";

interface WorkerScope {
  postMessage(report: Report): void;
  addEventListener(type: "message", listener: (event: MessageEvent<Request>) => void): void;
  readonly location: Location;
}
const scope = globalThis as unknown as WorkerScope;
const report = (message: Report): void => scope.postMessage(message);

const runDir = "/run";
/** The settings of the run, with which it continues after a reload. */
const settingsFile = "/settings.json";
const modelFolder = "/micro-world";
let training: AbortController | null = null;
/** Null before they are open, while another page has opened them, and in memory. */
let files: BrowserFiles | null = null;
let isInMemory = false;

async function openFiles(): Promise<void> {
  if (files !== null || isInMemory) return;
  try {
    files = await openBrowserFiles();
  } catch (error) {
    if (!PeriodicEvalError.is(error) || error.detail?.kind !== "no-storage") throw error;
    isInMemory = true;
  }
}

async function showRun(): Promise<RunRecord> {
  const run = await readRun(runDir);
  report({ kind: "run", markup: renderRun(run, "Fine-tuning in this tab") });
  return run;
}

/** Between two drawings of the run while it trains. */
const drawingMilliseconds = 2000;

/** Reports every step to the page, and the run's curves after measurements. */
function pageLogger(stepSeconds: number[]): Logger {
  let last: { readonly step: number; readonly seconds: number } | null = null;
  let [isStale, drawnAt] = [true, -Infinity];
  const draw = async (): Promise<void> => {
    if (!isStale || performance.now() - drawnAt < drawingMilliseconds) return;
    isStale = false;
    await showRun();
    drawnAt = performance.now();
  };
  return {
    name: "page",
    begin: draw,
    async train({ loss }, { phase, step, maxSteps, elapsedSeconds: seconds }) {
      if (last?.step === step - 1) stepSeconds.push(seconds - last.seconds);
      last = { step, seconds };
      report({ kind: "step", phase, step, maxSteps, loss: loss ?? null });
      await draw();
    },
    event(event) {
      if (event.kind === "measuring") report(event);
      if (event.kind === "warning") console.warn(`${event.where}: ${event.message}`);
    },
    async snapshot() {
      isStale = true;
      await draw();
    },
    end: async () => void (await showRun()),
  };
}

async function train(given: Settings): Promise<void> {
  await openFiles();
  const { signal } = (training = new AbortController());
  await fetchFiles(modelFolder, new URL("micro-world/", scope.location.href), microWorldFiles);
  const { name: backend } = await useBackend(given.backend === null ? {} : { backend: given.backend });
  report({ kind: "engine", name: backend });
  const settings: Settings = { ...given, backend };
  await writeFile(settingsFile, JSON.stringify(settings));
  const model = await loadCausalLM(modelFolder);
  const stepSeconds: number[] = [];
  try {
    const results = await runPipeline(
      await Promise.all(
        phases.map(async ({ name, dataset, learningRate }) => ({
          phase: name,
          dataset: `${modelFolder}/${dataset}`,
          config: { learningRate },
          callbacks: await microWorldCallbacks(modelFolder, settings),
        })),
      ),
      {
        model,
        tokenizer: await loadTokenizer(modelFolder),
        runDir,
        signal,
        config: {
          ...sharedConfig,
          maxSteps: settings.steps,
          saveSteps: settings.saveSteps,
        },
        loggers: [pageLogger(stepSeconds)],
      },
    );
    report({ kind: "ended", end: await endOf(results, await showRun(), stepSeconds) });
  } finally {
    model.dispose();
    training = null;
  }
}

async function endOf(
  results: readonly TrainResult[],
  run: RunRecord,
  stepSeconds: readonly number[],
): Promise<RunEnd> {
  const { checkpoint, steps, maxSteps, resumedFrom, brokenReceipt } = results.at(-1)!;
  const tensors = ["trainables.safetensors", "optimizer.safetensors"].map((file) => `${checkpoint}/${file}`);
  const found = undisturbed(run.phases.flatMap(({ snapshots }) => snapshots));
  return {
    isFinished: results.length === phases.length && steps === maxSteps,
    resumedFrom,
    weights: checkpoint === null ? null : await hashFiles(tensors),
    undisturbed: found?.answer ?? "not proven",
    brokenReceipt,
    secondsPerStep: stepSeconds.toSorted((a, b) => a - b)[stepSeconds.length >> 1] ?? null,
  };
}

async function open(): Promise<void> {
  await openFiles();
  const text = await readFile(settingsFile, "utf8").catch(() => null);
  if (text === null) return report({ kind: "ready", isInMemory, run: null });
  const { phases: known } = await showRun();
  const isFinished = known.length === phases.length && known.at(-1)!.state === "finished";
  report({ kind: "ready", isInMemory, run: { settings: JSON.parse(text) as Settings, isFinished } });
}

const requests: {
  readonly [K in Request["kind"]]: (request: Extract<Request, { kind: K }>) => Promise<void>;
} = {
  start: ({ settings }) => train(settings),
  pause: async () => training?.abort(),
  delete: async () => {
    await openFiles();
    await rm(runDir, { recursive: true, force: true });
    await rm(settingsFile, { force: true });
    // Writes the deletion to the storage.
    await files?.close();
    report({ kind: "deleted" });
  },
};

async function attempt(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    console.error(error);
    report({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
  }
}

scope.addEventListener("message", ({ data }) => void attempt(requests[data.kind](data as never)));
void attempt(open());
