import type { Logger } from "@periodic-eval/core";
import { createLogUpdate } from "log-update";
import { measuringText, snapshotText, trainingText } from "./progress-text.ts";
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
  const { colours } = terminal;
  const display = terminal.isInteractive ? screen() : pipe(terminal);
  let phase = "";
  let measured = "";
  let lastTold = -1;
  const show = (doing: string) =>
    display.update([doing, measured].filter((part) => part !== "").join(colours.dim("  │  ")));
  return {
    name: "live-line",
    train(metrics, at) {
      ({ phase } = at);
      const training = trainingText(metrics, at, colours);
      show(training);
      // Where lines stay, one every tenth of the phase is enough.
      const tenth = at.maxSteps === null ? at.step : Math.floor((10 * at.step) / at.maxSteps);
      if (!terminal.isInteractive && tenth !== lastTold) display.keep(training);
      lastTold = tenth;
    },
    event(event) {
      if (event.kind === "warning") display.keep(colours.yellow(`warning: ${event.where}: ${event.message}`));
      else show(measuringText(event, phase, colours));
    },
    snapshot(snapshot) {
      measured = snapshotText(snapshot, colours);
      display.keep(`${colours.bold(snapshot.phase)} step ${snapshot.step}  ${measured}`);
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
