import type { DownloadProgress, LoadProgress } from "@periodic-eval/models";
import { createLogUpdate } from "log-update";
import type { Terminal } from "./terminal.ts";

export interface LoadingLine {
  readonly onDownload: (progress: DownloadProgress) => void;
  readonly onLoad: (progress: LoadProgress) => void;
  close(): void;
}

/**
 * Shows a model's files as they are fetched from the hub, and its weights as they are read: a bar on a screen; elsewhere
 * a line for each file that is fetched, as it begins.
 */
export function loadingLine(terminal: Terminal): LoadingLine {
  const line = terminal.isInteractive ? createLogUpdate(process.stderr) : null;
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

/** `fetching model.safetensors  ████████████░░░░░░░░  60 % of 269.1 MB` */
export function barText(doing: string, { doneBytes, totalBytes }: Omit<LoadProgress, "model">): string {
  const share = totalBytes === 0 ? 1 : doneBytes / totalBytes;
  const filled = Math.floor(20 * share);
  const bar = "█".repeat(filled) + "░".repeat(20 - filled);
  return `${doing}  ${bar}  ${Math.floor(100 * share)} % of ${sizeText(totalBytes)}`;
}

const sizeText = (bytes: number): string =>
  bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
