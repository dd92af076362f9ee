import { expect, it } from "vitest";
import { barText, showLoading } from "./progress.ts";
import { recordingTerminal } from "./recording-terminal.test-data.ts";

const progress = { model: "owner/name", file: "model.safetensors", totalBytes: 269_060_552 };

it("draws a bar on a terminal", () => {
  // 161,436,331 of 269,060,552 bytes are 60 %: 12 of 20 blocks.
  expect(barText("fetching model.safetensors", { ...progress, doneBytes: 161_436_332 })).toBe(
    "fetching model.safetensors  ████████████░░░░░░░░  60 % of 269.1 MB",
  );
  expect(barText("reading x", { doneBytes: 0, totalBytes: 0 })).toContain("100 % of 0.0 kB");
});

it("prints one line per file to stderr without a terminal", async () => {
  const terminal = recordingTerminal();
  await showLoading(terminal, async (line) => {
    for (const doneBytes of [0, 1000, progress.totalBytes]) line.onDownload({ ...progress, doneBytes });
    line.onDownload({ ...progress, file: "config.json", doneBytes: 0, totalBytes: 582 });
    line.onLoad({ model: "owner/name", doneBytes: 5, totalBytes: 10 });
  });
  expect(terminal.outputs).toEqual([]);
  expect(terminal.errors).toEqual([
    "fetching model.safetensors of owner/name (269.1 MB)",
    "fetching config.json of owner/name (0.6 kB)",
  ]);
});
