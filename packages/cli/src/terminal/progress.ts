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
 * Shows the download of a model's files and the loading of its weights while `load` runs: a progress bar on a screen, otherwise one
 * line per downloaded file.
 */
export async function showLoading<T>(
  terminal: Terminal,
  load: (progress: LoadingProgress) => Promise<T>,
): Promise<T> {
  const line = terminal.isInteractive ? screenLine() : null;
  let shown = "";
  const show = (text: string) => {
    if (text === shown) return;
    shown = text;
    if (line === null) terminal.err(text);
    else line(text);
  };
  return load({
    onDownload: (progress) =>
      show(line === null ? startText(progress) : barText(`fetching ${progress.file}`, progress)),
    onLoad: (progress) => line !== null && show(barText(`reading ${progress.model}`, progress)),
  }).finally(() => line?.clear());
}

const startText = ({ model, file, totalBytes }: DownloadProgress): string =>
  `fetching ${file} of ${model} (${sizeText(totalBytes)})`;

/** Returns `fetching model.safetensors  ████████████░░░░░░░░  60 % of 269.1 MB`. */
export function barText(label: string, { doneBytes, totalBytes }: Omit<LoadProgress, "model">): string {
  const share = totalBytes === 0 ? 1 : doneBytes / totalBytes;
  const filled = Math.floor(20 * share);
  const bar = "█".repeat(filled) + "░".repeat(20 - filled);
  return `${label}  ${bar}  ${Math.floor(100 * share)} % of ${sizeText(totalBytes)}`;
}

const sizeText = (bytes: number): string =>
  bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
