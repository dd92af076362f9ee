// Shows a fine-tuning that runs in a worker: its progress, and the charts, tables and receipts of the dashboard.
import { showRun } from "@periodic-eval/dashboard/page";
import type { Report, Request, Settings } from "./messages.ts";

const element = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const [start, pause, remove] = ["start", "pause", "delete"].map((id) => element<HTMLButtonElement>(id)) as [
  HTMLButtonElement,
  HTMLButtonElement,
  HTMLButtonElement,
];
element("hint").remove();
const [status, progress] = [element("status"), element<HTMLProgressElement>("progress")];

/** `?steps=80&save=10&questions=100&callbacks=capability,leakage&backend=wasm` changes the run. */
const query = new URLSearchParams(location.search);
const numberOf = (name: string, usual: number): number => {
  const value = Number(query.get(name) ?? usual);
  return Number.isInteger(value) && value > 0 ? value : usual;
};
let settings: Settings = {
  steps: numberOf("steps", 80),
  saveSteps: numberOf("save", 10),
  questions: numberOf("questions", 100),
  callbacks: query.get("callbacks")?.split(",") ?? null,
  backend: query.get("backend"),
};
let engine = "";
let isInMemory = false;
/** A new page has a new backend: one whose GPU was lost fails at each further call. */
const reload = (): string =>
  `Reload the page to ${isInMemory ? "start again" : "continue from the last checkpoint"}.`;

const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
const ask = (request: Request): void => worker.postMessage(request);

function showState(state: "loading" | "idle" | "training" | "finished", text: string): void {
  document.body.dataset["state"] = state;
  status.textContent = text;
  start.disabled = state !== "idle";
  pause.disabled = state !== "training";
  remove.disabled = state === "loading" || state === "training";
}

function begin(): void {
  showState("training", "Loading the model …");
  ask({ kind: "start", settings });
}

const shown: { readonly [K in Report["kind"]]: (report: Extract<Report, { kind: K }>) => void } = {
  ready({ run, isInMemory: hasNoStorage }) {
    isInMemory = hasNoStorage;
    if (isInMemory) return showState("idle", "Ready. This browser allows no storage: a reload ends the run.");
    if (run === null) return showState("idle", "Ready. The model and the data are part of this page.");
    ({ settings } = run);
    if (run.isFinished) return showState("finished", "This run is finished. Delete it to train again.");
    begin();
  },
  engine({ name }) {
    engine = name;
    status.textContent = `Starting on ${name} …`;
  },
  step({ phase, step, maxSteps, loss }) {
    document.body.dataset["step"] = `${phase} ${step}`;
    progress.max = maxSteps ?? 1;
    progress.value = step;
    status.textContent = `${phase}: step ${step} of ${maxSteps}, loss ${loss?.toFixed(3) ?? "unknown"}, on ${engine}`;
  },
  measuring({ id, done, total }) {
    status.textContent = `Training pauses: ${id} measures ${done} of ${total}`;
  },
  run: ({ markup }) => showRun(markup),
  ended({ end }) {
    document.body.dataset["end"] = JSON.stringify(end);
    const { isFinished, undisturbed, brokenReceipt, secondsPerStep } = end;
    const pace = secondsPerStep === null ? "" : ` ${secondsPerStep.toFixed(2)} s a step on ${engine}.`;
    if (isFinished) showState("finished", `Finished. Training undisturbed: ${undisturbed}.${pace}`);
    else if (brokenReceipt !== null)
      showState("idle", `Stopped: ${brokenReceipt.replace(/\.$/, "")}. ${reload()}`);
    else
      showState(
        "idle",
        `Paused. Press Train${isInMemory ? "" : ", or reload the page,"} to continue.${pace}`,
      );
  },
  deleted: () => location.reload(),
  failed: ({ message }) => showState("idle", `${message} ${reload()}`),
};

worker.addEventListener("message", ({ data }: MessageEvent<Report>) => shown[data.kind](data as never));
worker.addEventListener("error", (event) => {
  if (event instanceof ErrorEvent) showState("idle", event.message);
  // A script that the host does not send fails without a message.
  else showState("loading", "worker.js cannot be loaded. Reload the page to try again.");
});
start.addEventListener("click", begin);
pause.addEventListener("click", () => ask({ kind: "pause" }));
remove.addEventListener("click", () => {
  showState("loading", "Deleting the run …");
  ask({ kind: "delete" });
});
