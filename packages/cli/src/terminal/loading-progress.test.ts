import { expect, it } from "vitest";
import { barText, showLoading } from "./progress.ts";
import { recordingTerminal } from "./recording-terminal.test-data.ts";

const progress = { model: "owner/name", file: "model.safetensors", totalBytes: 269_060_552 };

it("draws a bar on a terminal", () => {
  // 161,436,331 of 269,060,552 bytes are 60 %: 12 of 20 blocks.
  expect(barText("fetching model.safetensors", { ...progress, doneBytes: 161_436_332 })).toBe(
    "fetching model.safetensors  ████████████░░░░░░░░  60 % of 269.1 MB",
  );
  // 60,000,000 bytes in 5 s are 12 MB/s; 107,624,220 bytes remain.
  const since = { seconds: 5, doneBytes: 101_436_332 };
  expect(barText("fetching x", { ...progress, doneBytes: 161_436_332 }, since)).toMatch(
    / {2}60 % of 269\.1 MB {2}12\.0 MB\/s {2}9 s left$/,
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

it("prints a line a minute about a long download without a terminal, with the rate and the time left", async () => {
  const terminal = recordingTerminal();
  let seconds = 0;
  await showLoading(
    terminal,
    async (line) => {
      for (let doneBytes = 0; doneBytes < 9 * 2 ** 20; doneBytes += 2 ** 20, seconds += 20)
        line.onDownload({ model: "owner/name", file: "x", doneBytes, totalBytes: 9 * 2 ** 20 });
    },
    () => seconds,
  );
  expect(terminal.errors).toEqual([
    "fetching x of owner/name (9.4 MB)",
    // 3 MiB in 60 s.
    "fetching x  ██████░░░░░░░░░░░░░░  33 % of 9.4 MB  52.4 kB/s  2 min left",
    "fetching x  █████████████░░░░░░░  66 % of 9.4 MB  52.4 kB/s  1 min left",
  ]);
});
