import {
  appendFileSync,
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
} from "node:fs";
import { dirname } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { quoteValue } from "@periodic-eval/core/internal";
import { nodeFiles, storeError, writeFileAtomic } from "@periodic-eval/core/snapshots";

/** A file of lines that grows while training runs. */
export interface LineFile {
  /** Written when it returns, so that a killed process loses none. */
  append(lines: readonly string[]): void;
  /** Every line that is there now. */
  lines(): Promise<readonly string[]>;
  /** Throws where what stands there is no file of ours; the first line tells. */
  refuseOthers(): void;
  /**
   * Drops the lines of which this holds; the file is replaced whole, and left alone where there is none. What a crash left of
   * a last line of ours goes to `<path>.torn`.
   */
  drop(isStale: (line: string) => boolean): Promise<void>;
  /** A later `append` opens the file again. */
  close(): void;
}

/** How lines of a file are known for ours. */
export interface LineKind {
  /** The first line of a new file. */
  readonly header?: string;
  /** Of every line. */
  readonly end?: string;
  /** What it is called in errors: `a JSONL file of this logger`. */
  readonly called: string;
  /** Whether a file whose first line begins so, of up to 4096 characters, is one of ours; a crash may have cut that line. */
  isOurs(firstLine: string): boolean;
  /** Whether a last line without an end is what a crash left of one of ours. */
  isTorn(piece: string): boolean;
}

/**
 * Opens nothing to write before the first line.
 *
 * @throws PeriodicEvalError `config` where a file of another kind stands there; `store` where the file cannot be written.
 */
export function lineFile(path: string, kind: LineKind): LineFile {
  const { header, end = "\n" } = kind;
  let file: number | null = null;

  function refuseOthers(): void {
    const [start = ""] = startOf(path).split(/\r?\n/);
    if (start === "" || kind.isOurs(start)) return;
    throw new PeriodicEvalError({
      code: "config",
      where: path,
      got: `a file that begins with ${quoteValue(start)}`,
      expected: `${kind.called}, or no file`,
      fix: "Name another path, or move that file away: this logger adds lines to its file and drops those of steps trained again.",
    });
  }

  /** The last piece is empty, or has no end. Editors and Git change how lines end. */
  async function read(): Promise<{ text: string; lines: readonly string[]; last: string }> {
    const text = existsSync(path) ? await nodeFiles.read(path) : "";
    const pieces = text.split(/\r?\n/);
    const last = pieces.at(-1)!;
    if (last === "" || kind.isTorn(last)) return { text, lines: pieces.slice(0, -1), last };
    return { text, lines: pieces, last: "" };
  }

  function open(): number {
    mkdirSync(dirname(path), { recursive: true });
    const opened = openSync(path, "a+");
    try {
      if (fstatSync(opened).size === 0 && header !== undefined) appendWhole(opened, header + end);
    } catch (error) {
      closeSync(opened);
      throw error;
    }
    return opened;
  }

  function close(): void {
    if (file === null) return;
    fsyncSync(file);
    closeSync(file);
    file = null;
  }

  return {
    refuseOthers,
    lines: async () => (await read()).lines,
    append(lines) {
      if (lines.length === 0) return;
      try {
        file ??= open();
        appendWhole(file, lines.map((line) => line + end).join(""));
      } catch (error) {
        throw storeError(path, error);
      }
    },
    async drop(isStale) {
      close();
      if (!existsSync(path)) return;
      try {
        const { text, lines, last } = await read();
        if (last !== "") appendFileSync(`${path}.torn`, last + end);
        const kept = lines.filter((line) => line === header || !isStale(line)).map((line) => line + end);
        if (kept.join("") !== text) await writeFileAtomic(path, kept.join(""));
      } catch (error) {
        throw storeError(path, error);
      }
    },
    close,
  };
}

/** The first bytes of a file; nothing where none can be read, which writing will tell. */
function startOf(path: string): string {
  let file: number | null = null;
  try {
    file = openSync(path, "r");
    const bytes = Buffer.alloc(4096);
    return bytes.toString("utf8", 0, readSync(file, bytes));
  } catch {
    return "";
  } finally {
    if (file !== null) closeSync(file);
  }
}

/** Of what a full disk took a part of, that part is taken back: the next line would go on in the middle of it. */
function appendWhole(file: number, text: string): void {
  const { size } = fstatSync(file);
  try {
    appendFileSync(file, text);
  } catch (error) {
    ftruncateSync(file, size);
    throw error;
  }
}
