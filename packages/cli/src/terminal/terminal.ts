import pc from "picocolors";

export type Colours = ReturnType<typeof pc.createColors>;

/** Where a command writes. */
export interface Terminal {
  /** Results: tables, or with `--json` one JSON document. */
  out(text: string): void;
  /** Progress and errors. */
  err(text: string): void;
  /** Whether a person watches `out` on a screen that can rewrite a line. */
  readonly isInteractive: boolean;
  /** What `out` is coloured with; plain where nobody sees colours. */
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
 * Lets the process go on where nobody reads what it says any more (`| head -3`), or a disk is full: Node would end it, and
 * hours of training with it.
 */
export function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
}

/** The same terminal, where `out` is kept for one JSON document: everything else goes to `err`. */
export const beside = (terminal: Terminal): Terminal => ({
  ...terminal,
  out: terminal.err,
  isInteractive: false,
  colours: pc.createColors(false),
});
