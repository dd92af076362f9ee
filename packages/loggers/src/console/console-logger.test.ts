import { spawn } from "node:child_process";
import { once } from "node:events";
import type { RunProgress } from "@periodic-eval/core";
import pc from "picocolors";
import { expect, it } from "vitest";
import { consoleLogger } from "./console-logger.ts";

function recordingTerminal() {
  const lines: string[] = [];
  return {
    lines,
    out: (text: string) => void lines.push(text),
    isInteractive: false,
    colours: pc.createColors(false),
  };
}

const at = (step: number): RunProgress => ({
  phase: "em",
  runStep: step,
  step,
  maxSteps: 40,
  epoch: 0,
  elapsedSeconds: step / 2,
  ended: false,
});

it("prints one line per tenth of a phase without a screen", async () => {
  const terminal = recordingTerminal();
  const logger = consoleLogger(terminal);
  for (let step = 1; step <= 40; step += 1)
    await logger.train?.({ loss: 2, tokens_per_second: 1234.5 }, at(step));
  // Step 1 begins the first tenth; the others begin at 4, 8, …, 40.
  expect(terminal.lines).toHaveLength(11);
  // 40 steps of 0.5 s each: 16 s are left after step 8.
  expect(terminal.lines[2]).toContain(
    "step 8/40  loss 2.000  2 steps/s  1235 tokens/s  16 s of training left",
  );
  await logger.close?.();
});

it("prints steps of unknown length and warnings", async () => {
  const terminal = recordingTerminal();
  const logger = consoleLogger(terminal);
  await logger.train?.({ loss: 2 }, { ...at(3), maxSteps: null });
  logger.event?.({
    kind: "measuring",
    id: "capability",
    step: 3,
    done: 1,
    total: 2,
    seconds: 0,
    tokens: null,
  });
  logger.event?.({ kind: "warning", where: "dataset", message: "2 rows left out" });
  expect(terminal.lines.map((line) => line.trim())).toEqual([
    expect.stringMatching(/step 3 {2}loss 2\.000 {2}2 steps\/s$/),
    expect.stringContaining("measuring capability 1/2"),
    expect.stringContaining("dataset: 2 rows left out"),
  ]);
});

it("shows escape sequences of names and messages escaped, and keeps its colours", async () => {
  const terminal = { ...recordingTerminal(), colours: pc.createColors(true) };
  const logger = consoleLogger(terminal);
  await logger.train?.({ loss: 2 }, { ...at(4), phase: "em\x1b[2J\x1b[31m" });
  logger.event?.({ kind: "warning", where: "rows\u202e.jsonl", message: "\x9b2J\rok" });
  expect(terminal.lines[0]).toContain("\x1b[1mem\\x1b[2J\\x1b[31m\x1b[22m");
  expect(terminal.lines[1]).toBe("\x1b[33mwarning: rows\\u202e.jsonl: \\u009b2J\\x0dok\x1b[39m");
});

it.each([
  ["consoleLogger", "../../dist/console/console-logger.js"],
  ["plainConsoleLogger", "../../../core/dist/console/console-logger.js"],
])("lets training continue with %s when standard output is closed", async (name, file) => {
  // The compiled file starts faster than the source; `npm test` builds first.
  const loop = `
    import { ${name} } from ${JSON.stringify(new URL(file, import.meta.url).href)};
    const logger = ${name}();
    for (let step = 1; step <= 5; step += 1) {
      logger.train({ loss: 1 }, { phase: "em", runStep: step, step, maxSteps: 5, epoch: 0, elapsedSeconds: 1, ended: false });
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    process.stderr.write("trained");
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", loop]);
  // `head` closes the pipe in the same way.
  child.stdout.destroy();
  let stderr = "";
  child.stderr.on("data", (text) => (stderr += text));
  const [code] = (await once(child, "close")) as [number];
  expect([code, stderr]).toEqual([0, "trained"]);
});
