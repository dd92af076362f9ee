/** Where a command writes. */
export interface Terminal {
  /** Results: tables, or with `--json` one JSON document. */
  out(text: string): void;
  /** Progress and errors. */
  err(text: string): void;
  /** Whether a person watches `out` on a screen that can rewrite a line. */
  readonly isInteractive: boolean;
}

export const processTerminal: Terminal = {
  out: (text) => void process.stdout.write(`${text}\n`),
  err: (text) => void process.stderr.write(`${text}\n`),
  isInteractive: process.stdout.isTTY === true && process.env["CI"] === undefined,
};
