import type { DownloadProgress, LoadProgress } from "@periodic-eval/models";
import { screenLine, type Terminal } from "./terminal.ts";

export interface LoadingDisplay {
  readonly onDownload: (progress: DownloadProgress) => void;
  readonly onLoad: (progress: LoadProgress) => void;
  close(): void;
}

/**
 * Shows the download of a model's files and the loading of its weights: a progress bar on a screen, otherwise one line per
 * downloaded file.
 */
export function showLoading(terminal: Terminal): LoadingDisplay {
  const line = terminal.isInteractive ? screenLine() : null;
  let shown = "";
  const show = (text: string) => {
    if (text === shown) return;
    shown = text;
    if (line === null) terminal.err(text);
    else line(text);
  };
  return {
    onDownload: (progress) =>
      show(line === null ? startText(progress) : barText(`fetching ${progress.file}`, progress)),
    onLoad: (progress) => line !== null && show(barText(`reading ${progress.model}`, progress)),
    close: () => line?.clear(),
  };
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
