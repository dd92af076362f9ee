import type { Logger } from "@periodic-eval/core";
import {
  displayLogger,
  keepRunningWithoutOutput,
  type Colours,
  type Display,
} from "@periodic-eval/core/console";
import {
  functionSchema,
  isOwnColours,
  ownColours,
  parseOptions,
  printable,
} from "@periodic-eval/contracts/options";
import { createLogUpdate } from "log-update";
import pc from "picocolors";
import * as z from "zod";

/** Where and how the console logger prints. */
export interface ConsoleOptions {
  /** Prints a line. Default: to standard output. */
  readonly out?: (text: string) => void;
  /** Whether the output is a screen that can rewrite a line. Default: whether standard output is a terminal. */
  readonly isInteractive?: boolean;
  /** Default: colours if standard output is a terminal and NO_COLOR is unset. */
  readonly colours?: Colours;
  /** Whether the last line says where the run is, its overhead, and whether training was undisturbed. Default true. */
  readonly closingLine?: boolean;
}

/** Extra keys are allowed, because a command line's terminal object is a valid value. */
const schema = z.looseObject({
  out: functionSchema<(text: string) => void>().optional(),
  isInteractive: z.boolean("true or false").optional(),
  colours: z
    .custom<Colours>((value) => typeof value === "object" && value !== null, "colours of picocolors")
    .optional(),
  closingLine: z.boolean("true or false").optional(),
} satisfies Record<keyof ConsoleOptions, z.ZodType>);

/**
 * Shows the progress of training and measuring: phase, step, loss, speed, time left, measurements, warnings, and at the end
 * where the run is and whether training was undisturbed. A screen updates one line; a file or a pipe gets about ten lines per
 * phase. Training continues if standard output is closed or full.
 */
export function consoleLogger(options: ConsoleOptions = {}): Logger {
  parseOptions("consoleLogger options", schema, options);
  const isScreen = process.stdout.isTTY === true;
  const {
    out: print = (text) => void process.stdout.write(`${text}\n`),
    isInteractive = isScreen && process.env["CI"] === undefined,
    colours: palette = pc.createColors(isScreen && process.env["NO_COLOR"] === undefined),
    closingLine = true,
  } = options;
  const colours = ownColours(palette);
  // With own colours, as a command line's terminal has them, `out` passes its text through `printable` itself.
  const out = isOwnColours(palette) ? print : (text: string) => print(printable(text));
  if (isInteractive || options.out === undefined) keepRunningWithoutOutput();
  const { update, keep, close }: Omit<Display, "warn"> = isInteractive ? screen() : { keep: out };
  const warn: Display["warn"] = (where, message) => keep(colours.yellow(`warning: ${where}: ${message}`));
  return displayLogger(
    { keep, warn, ...(update && { update }), ...(close && { close }) },
    { colours, closingLine },
  );
}

function screen(): Omit<Display, "warn"> {
  const line = createLogUpdate(process.stdout);
  return {
    update: (text) => line(printable(text)),
    keep(text) {
      line.clear();
      process.stdout.write(`${printable(text)}\n`);
    },
    close: () => line.clear(),
  };
}
