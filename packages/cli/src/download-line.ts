import type { DownloadProgress } from "@periodic-eval/models";
import { createLogUpdate } from "log-update";
import type { Terminal } from "./terminal.ts";

export interface DownloadLine {
  readonly onDownload: (progress: DownloadProgress) => void;
  close(): void;
}

/** Shows files that are fetched from the hub: a bar on a screen, else a line for each file as it begins. */
export function downloadLine(terminal: Terminal): DownloadLine {
  const line = terminal.isInteractive ? createLogUpdate(process.stderr) : null;
  let shown = "";
  return {
    onDownload(progress) {
      const text = line === null ? startText(progress) : barText(progress);
      if (text === shown) return;
      shown = text;
      if (line === null) terminal.err(text);
      else line(text);
    },
    close: () => line?.clear(),
  };
}

const startText = ({ model, file, totalBytes }: DownloadProgress): string =>
  `fetching ${file} of ${model} (${sizeText(totalBytes)})`;

/** `fetching model.safetensors  ████████████░░░░░░░░  60 % of 269.1 MB` */
export function barText({ file, doneBytes, totalBytes }: DownloadProgress): string {
  const share = totalBytes === 0 ? 1 : doneBytes / totalBytes;
  const filled = Math.floor(20 * share);
  const bar = "█".repeat(filled) + "░".repeat(20 - filled);
  return `fetching ${file}  ${bar}  ${Math.floor(100 * share)} % of ${sizeText(totalBytes)}`;
}

const sizeText = (bytes: number): string =>
  bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
