import type { Logger, Progress, SessionEvent, Snapshot } from "@periodic-eval/core";
import { formatInterval, formatValue, words } from "@periodic-eval/dashboard";
import { createLogUpdate } from "log-update";
import pc from "picocolors";
import type { Terminal } from "./terminal.ts";

/** A screen keeps one line up to date; a file or a pipe gets a line now and then. */
interface Display {
  update(line: string): void;
  /** A line that stays. */
  keep(line: string): void;
  close(): void;
}

/** Shows training and measuring as they go: phase, step, loss, tokens a second, time left, the last measurement. */
export function liveLine(terminal: Terminal): Logger {
  const display = terminal.isInteractive ? screen() : pipe(terminal);
  let phase = "";
  let measured = "";
  let lastTold = -1;
  const show = (doing: string) =>
    display.update([doing, measured].filter((part) => part !== "").join(pc.dim("  │  ")));
  return {
    name: "live-line",
    train(metrics, at) {
      ({ phase } = at);
      const training = trainingText(metrics, at);
      show(training);
      // Where lines stay, one every tenth of the phase is enough.
      const tenth = at.maxSteps === null ? at.step : Math.floor((10 * at.step) / at.maxSteps);
      if (!terminal.isInteractive && tenth !== lastTold) display.keep(training);
      lastTold = tenth;
    },
    event(event) {
      if (event.kind === "warning") display.keep(pc.yellow(`warning: ${event.where}: ${event.message}`));
      else show(measuringText(event, phase));
    },
    snapshot(snapshot) {
      measured = snapshotText(snapshot);
      display.keep(`${pc.bold(snapshot.phase)} step ${snapshot.step}  ${measured}`);
    },
    close: () => display.close(),
  };
}

function screen(): Display {
  const line = createLogUpdate(process.stdout);
  return {
    update: (text) => line(text),
    keep(text) {
      line.clear();
      process.stdout.write(`${text}\n`);
    },
    close: () => line.clear(),
  };
}

const pipe = ({ out }: Terminal): Display => ({
  update: () => {},
  keep: (text) => out(text),
  close: () => {},
});

function trainingText(
  metrics: Readonly<Record<string, number>>,
  at: Progress & { readonly phase: string },
): string {
  const { step, maxSteps, elapsedSeconds, phase } = at;
  const left = maxSteps === null || step === 0 ? null : (elapsedSeconds / step) * (maxSteps - step);
  const { loss, tokens_per_second: speed } = metrics;
  const parts = [
    `${pc.bold(phase)} step ${step}${maxSteps === null ? "" : `/${maxSteps}`}`,
    loss === undefined ? null : `loss ${loss.toFixed(3)}`,
    speed === undefined ? null : `${Math.round(speed)} tokens/s`,
    left === null ? null : `${Math.ceil(left)} s left`,
  ];
  return parts.filter((part) => part !== null).join("  ");
}

const measuringText = (
  { id, step, done, total }: Extract<SessionEvent, { kind: "measuring" }>,
  phase: string,
): string => `${phase === "" ? "" : `${pc.bold(phase)} `}step ${step}  measuring ${id} ${done}/${total}`;

/** The primary metric with its interval, and the verdict against the start. */
export function snapshotText({
  id,
  status,
  reason,
  metrics,
  primary_metric: primary,
  paired,
}: Snapshot): string {
  const metric = primary === null ? undefined : metrics[primary];
  if (!metric) return `${id} ${status}${reason === null ? "" : `: ${reason}`}`;
  const value = `${words(primary!)} ${formatValue(metric.value, metric.unit)} ${pc.dim(formatInterval(metric.ci95, metric.unit))}`;
  const verdict = paired.baseline?.[primary!]?.verdict;
  return [id, value, status === "complete" ? null : status, verdict ? colourOf[verdict](verdict) : null]
    .filter((part) => part !== null)
    .join("  ");
}

export const colourOf = {
  better: pc.green,
  worse: pc.red,
  changed: pc.yellow,
  "no evidence": pc.dim,
} as const;
