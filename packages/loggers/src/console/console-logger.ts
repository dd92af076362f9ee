import type { Logger } from "@periodic-eval/core";
import { parseOptions } from "@periodic-eval/core/internal";
import { createLogUpdate } from "log-update";
import pc from "picocolors";
import { z } from "zod";
import { measuringText, snapshotText, trainingText, type Colours } from "./progress-text.ts";

/** Where and how the console logger prints. */
export interface ConsoleOptions {
  /** Prints a line. Default: to standard output. */
  readonly out?: (text: string) => void;
  /** Whether the output is a screen that can rewrite a line. Default: whether standard output is a terminal. */
  readonly isInteractive?: boolean;
  /** Default: colours if standard output is a terminal and NO_COLOR is unset. */
  readonly colours?: Colours;
}

/** Extra keys are allowed, because a command line's terminal object is a valid value. */
const schema = z.looseObject({
  out: z.custom<(text: string) => void>((value) => typeof value === "function", "a function").optional(),
  isInteractive: z.boolean("true or false").optional(),
  colours: z
    .custom<Colours>((value) => typeof value === "object" && value !== null, "colours of picocolors")
    .optional(),
} satisfies Record<keyof ConsoleOptions, z.ZodType>);

/** The output: a screen updates one line; a file or a pipe gets about ten lines per phase. */
interface Display {
  /** Shows a line that the next one replaces. */
  update(line: string): void;
  /** Prints a permanent line. */
  keep(line: string): void;
  close(): void;
}

/**
 * Shows the progress of training and measuring: phase, step, loss, tokens per second, time left, last measurement. Training
 * continues if standard output is closed or full.
 */
export function consoleLogger(options: ConsoleOptions = {}): Logger {
  parseOptions("consoleLogger options", schema, options);
  const isScreen = process.stdout.isTTY === true;
  const {
    out = (text) => void process.stdout.write(`${text}\n`),
    isInteractive = isScreen && process.env["CI"] === undefined,
    colours = pc.createColors(isScreen && process.env["NO_COLOR"] === undefined),
  } = options;
  if (isInteractive || options.out === undefined) ignoreStreamErrors(process.stdout);
  const display = isInteractive ? screen() : pipe(out);
  let phase = "";
  let measured = "";
  let lastTenth = -1;
  const show = (activity: string) =>
    display.update([activity, measured].filter((part) => part !== "").join(colours.dim("  │  ")));
  return {
    name: "console",
    train(metrics, at) {
      ({ phase } = at);
      const training = trainingText(metrics, at, colours);
      show(training);
      // Without a screen, one line per tenth of the phase is enough.
      const tenth = at.maxSteps === null ? at.step : Math.floor((10 * at.step) / at.maxSteps);
      if (!isInteractive && tenth !== lastTenth) display.keep(training);
      lastTenth = tenth;
    },
    event(event) {
      if (event.kind === "warning") display.keep(colours.yellow(`warning: ${event.where}: ${event.message}`));
      else if (event.kind === "plan") display.keep(colours.dim(`plan: ${event.message}`));
      else show(measuringText(event, phase, colours));
    },
    snapshot(snapshot) {
      measured = snapshotText(snapshot, colours);
      display.keep(`${colours.bold(snapshot.phase)} step ${snapshot.step}  ${measured}`);
    },
    close: () => display.close(),
  };
}

/** Without a listener for stream errors (`head` closed the pipe, the disk is full), Node would end the training process. */
const ignoreError = (): void => undefined;

function ignoreStreamErrors(stream: NodeJS.WriteStream): void {
  if (!stream.listeners("error").includes(ignoreError)) stream.on("error", ignoreError);
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
