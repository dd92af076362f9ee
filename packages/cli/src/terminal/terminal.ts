import pc from "picocolors";
import Table from "cli-table3";
import { ownColours, printable } from "@periodic-eval/contracts/options";
import { createLogUpdate } from "log-update";

export type Colours = ReturnType<typeof pc.createColors>;

/** Where a command prints. */
export interface Terminal {
  /** Prints results: tables, or with `--json` one JSON document. */
  out(text: string): void;
  /** Prints progress and errors. */
  err(text: string): void;
  /** Whether `out` is a screen that can rewrite a line. */
  readonly isInteractive: boolean;
  /** Colours for `out`; they do nothing where `out` is not a screen. */
  readonly colours: Colours;
}

const isScreen = process.stdout.isTTY === true;

export const processTerminal: Terminal = {
  out: (text) => void process.stdout.write(`${text}\n`),
  err: (text) => void process.stderr.write(`${text}\n`),
  isInteractive: isScreen && process.env["CI"] === undefined,
  colours: pc.createColors(isScreen && process.env["NO_COLOR"] === undefined),
};

/** Returns a terminal that shows escape sequences of names and texts escaped; its colours stay. */
export const safeTerminal = (terminal: Terminal): Terminal => ({
  ...terminal,
  out: (text) => terminal.out(printable(text)),
  err: (text) => terminal.err(printable(text)),
  colours: ownColours(terminal.colours),
});

/** Returns a function that shows a text in one line of the screen, in place of the one before, and `clear`, which removes it. */
export function screenLine(): { (text: string): void; clear(): void } {
  const line = createLogUpdate(process.stderr);
  return Object.assign((text: string) => line(printable(text)), { clear: () => line.clear() });
}

/**
 * Keeps the process alive when stdout or stderr can no longer be written (a closed pipe such as `| head -3`, a full disk). By
 * default Node ends the process, which would lose hours of training. If a file does not receive all of stdout, the process reports it
 * at its end and does not exit with 0.
 */
export function ignoreClosedOutput(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
  process.stdout.once("error", (error: NodeJS.ErrnoException) => {
    // A reader that closes its pipe, and a terminal that was closed, want no more output.
    if (isScreen || error.code === "EPIPE") return;
    process.once("exit", () => {
      process.stderr.write(
        `[periodic-eval] stdout: got ${error.message}, expected a file that takes all output. ` +
          "Free space on its disk, and run the command again.\n",
      );
      process.exitCode ||= 1;
    });
  });
}

/** Returns a terminal that prints everything to stderr, because stdout is reserved for one JSON document. */
export const progressOnly = (terminal: Terminal): Terminal => ({
  ...terminal,
  out: terminal.err,
  isInteractive: false,
  colours: ownColours(pc.createColors(false)),
});

/** A column's heading. Plain strings are right-aligned (numbers), `{ words }` is left-aligned. */
type Column = string | { readonly words: string };

const borders = [
  "top",
  "top-mid",
  "top-left",
  "top-right",
  "bottom",
  "bottom-mid",
  "bottom-left",
  "bottom-right",
  "left",
  "left-mid",
  "mid",
  "mid-mid",
  "right",
  "right-mid",
] as const;
const noBorders = Object.fromEntries(borders.map((name) => [name, ""]));

/** Returns a table without lines between its cells. */
export function plainTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  colours: Colours,
): string {
  const table = new Table({
    head: columns.map((column) => colours.dim(typeof column === "string" ? column : column.words)),
    chars: { ...noBorders, middle: "  " },
    colAligns: columns.map((column) => (typeof column === "string" ? "right" : "left")),
    style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
  });
  table.push(...rows.map((row) => [...row]));
  return table.toString().replaceAll(/ +$/gm, "");
}

/** Returns a value as the JSON document that `--json` prints. */
export const jsonText = (value: unknown): string => JSON.stringify(value, null, 2);
