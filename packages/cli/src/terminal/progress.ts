import type { MeasurementPace } from "@periodic-eval/core";
import { paceText } from "@periodic-eval/core/console";
import type { DownloadProgress, LoadProgress } from "@periodic-eval/models";
import { screenLine, type Terminal } from "./terminal.ts";

export interface MeasuringProgress extends MeasurementPace {
  /** Names what is measured. */
  readonly name: string;
  readonly done: number;
  readonly total: number;
}

export interface MeasuringDisplay {
  show(progress: MeasuringProgress): void;
  close(): void;
}

/** Between two lines about one measurement in a log. */
const lineSeconds = 60;

/**
 * Shows rows, tokens per second and the time left while a model answers: a moving line on a screen, otherwise a line a minute.
 *
 * @param edges Whether a log also gets a line when a measurement begins and one when it ends.
 */
export function showMeasuring(terminal: Terminal, { edges }: { readonly edges: boolean }): MeasuringDisplay {
  const line = terminal.isInteractive ? screenLine() : null;
  let shown = { name: "", seconds: 0, ended: false };
  return {
    show(progress) {
      const { name, done, total, seconds } = progress;
      const text = [`${name}  ${done} of ${total}`, paceText(progress) ?? []].flat().join("  ");
      if (line !== null) return line(text);
      const isNew = name !== shown.name;
      const ended = done === total;
      if (isNew) shown = { name, seconds: 0, ended: false };
      const isEdge = edges && (isNew || (ended && !shown.ended));
      shown.ended = ended;
      if (!isEdge && seconds - shown.seconds < lineSeconds) return;
      shown.seconds = seconds;
      terminal.err(text);
    },
    close: () => line?.clear(),
  };
}

interface LoadingProgress {
  readonly onDownload: (progress: DownloadProgress) => void;
  readonly onLoad: (progress: LoadProgress) => void;
}

/**
 * Shows the download of a model's files and the loading of its weights while `load` runs, with a rate and the time left: a progress
 * bar on a screen, otherwise a line when a file begins and one a minute.
 *
 * @param clock Returns seconds.
 */
export async function showLoading<T>(
  terminal: Terminal,
  load: (progress: LoadingProgress) => Promise<T>,
  clock = () => performance.now() / 1000,
): Promise<T> {
  const line = terminal.isInteractive ? screenLine() : null;
  let current = { label: "", doneBytes: 0, began: 0, shown: 0 };
  const show = (label: string, progress: Omit<LoadProgress, "model">, start: string | null) => {
    const now = clock();
    const isNew = label !== current.label;
    // A resumed download begins with bytes that were fetched before.
    if (isNew) current = { label, doneBytes: progress.doneBytes, began: now, shown: now };
    const text = barText(label, progress, { seconds: now - current.began, doneBytes: current.doneBytes });
    if (line !== null) return line(text);
    if (isNew && start !== null) return terminal.err(start);
    if (now - current.shown < lineSeconds) return;
    current.shown = now;
    terminal.err(text);
  };
  return load({
    onDownload: (progress) => show(`fetching ${progress.file}`, progress, startText(progress)),
    onLoad: (progress) => show(`reading ${progress.model}`, progress, null),
  }).finally(() => line?.clear());
}

const startText = ({ model, file, totalBytes }: DownloadProgress): string =>
  `fetching ${file} of ${model} (${sizeText(totalBytes)})`;

/**
 * Returns `fetching model.safetensors  ████████████░░░░░░░░  60 % of 269.1 MB  12.0 MB/s  9 s left`.
 *
 * @param since The seconds since `doneBytes` bytes were done. The rate and the time left are shown from the second that they can be known.
 */
export function barText(
  label: string,
  { doneBytes, totalBytes }: Omit<LoadProgress, "model">,
  since = { seconds: 0, doneBytes: 0 },
): string {
  const share = totalBytes === 0 ? 1 : doneBytes / totalBytes;
  const filled = Math.floor(20 * share);
  const bar = "█".repeat(filled) + "░".repeat(20 - filled);
  const text = `${label}  ${bar}  ${Math.floor(100 * share)} % of ${sizeText(totalBytes)}`;
  const [done, total] = [doneBytes - since.doneBytes, totalBytes - since.doneBytes];
  const left = paceText({ done, total, seconds: since.seconds, tokens: null });
  return left === null ? text : `${text}  ${sizeText(done / since.seconds)}/s  ${left}`;
}

const sizeText = (bytes: number): string =>
  bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
