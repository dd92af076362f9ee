import type { Logger } from "@periodic-eval/core";
import { createLogUpdate } from "log-update";
import pc from "picocolors";
import { measuringText, snapshotText, trainingText, type Colours } from "./progress-text.ts";

/** Where the console logger writes. */
export interface ConsoleOptions {
  /** Takes whole lines; standard output by default. */
  readonly out?: (text: string) => void;
  /** Whether a person watches a screen that can rewrite a line; by default whether standard output is a terminal. */
  readonly isInteractive?: boolean;
  readonly colours?: Colours;
}

/** A screen keeps one line up to date; a file or a pipe gets a line now and then. */
interface Display {
  update(line: string): void;
  /** A line that stays. */
  keep(line: string): void;
  close(): void;
}

/**
 * Shows training and measuring as they go: phase, step, loss, tokens a second, time left, the last measurement. Where
 * standard output is closed or full, training goes on without it.
 */
export function consoleLogger(options: ConsoleOptions = {}): Logger {
  const isScreen = process.stdout.isTTY === true;
  const {
    out = (text) => void process.stdout.write(`${text}\n`),
    isInteractive = isScreen && process.env["CI"] === undefined,
    colours = pc.createColors(isScreen && process.env["NO_COLOR"] === undefined),
  } = options;
  if (isInteractive || options.out === undefined) outlive(process.stdout);
  const display = isInteractive ? screen() : pipe(out);
  let phase = "";
  let measured = "";
  let lastTold = -1;
  const show = (doing: string) =>
    display.update([doing, measured].filter((part) => part !== "").join(colours.dim("  │  ")));
  return {
    name: "console",
    train(metrics, at) {
      ({ phase } = at);
      const training = trainingText(metrics, at, colours);
      show(training);
      // Where lines stay, one every tenth of the phase is enough.
      const tenth = at.maxSteps === null ? at.step : Math.floor((10 * at.step) / at.maxSteps);
      if (!isInteractive && tenth !== lastTold) display.keep(training);
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

/** A stream's errors: `head` closed the pipe, the disk is full. Without a listener Node ends the process of training. */
const goOnWithoutOutput = (): void => undefined;

function outlive(stream: NodeJS.WriteStream): void {
  if (!stream.listeners("error").includes(goOnWithoutOutput)) stream.on("error", goOnWithoutOutput);
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

const pipe = (out: (text: string) => void): Display => ({
  update: () => {},
  keep: (text) => out(text),
  close: () => {},
});
