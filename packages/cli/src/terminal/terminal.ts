import pc from "picocolors";

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

/**
 * Keeps the process alive when stdout or stderr can no longer be written (a closed pipe such as `| head -3`, a full disk). By
 * default Node ends the process, which would lose hours of training.
 */
export function ignoreClosedOutput(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
}

/** Returns a terminal that prints everything to stderr, because stdout is reserved for one JSON document. */
export const progressOnly = (terminal: Terminal): Terminal => ({
  ...terminal,
  out: terminal.err,
  isInteractive: false,
  colours: pc.createColors(false),
});
