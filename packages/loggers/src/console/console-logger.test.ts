import { spawn } from "node:child_process";
import { once } from "node:events";
import type { RunProgress } from "@periodic-eval/core";
import pc from "picocolors";
import { expect, it } from "vitest";
import { consoleLogger } from "./console-logger.ts";

function keptTerminal() {
  const said: string[] = [];
  return {
    said,
    out: (text: string) => void said.push(text),
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

it("leaves one line every tenth of a phase where it is not on a screen", async () => {
  const terminal = keptTerminal();
  const logger = consoleLogger(terminal);
  for (let step = 1; step <= 40; step += 1)
    await logger.train?.({ loss: 2, tokens_per_second: 1234.5 }, at(step));
  // Step 1 opens the first tenth; the next begin at 4, 8, …, 40.
  expect(terminal.said).toHaveLength(11);
  // 40 steps of half a second: 16 s of training are left after the 8th.
  expect(terminal.said[2]).toContain("step 8/40  loss 2.000  1235 tokens/s  16 s of training left");
  await logger.close?.();
});

it("says where a length is not known, a warning, and what is being measured", async () => {
  const terminal = keptTerminal();
  const logger = consoleLogger(terminal);
  await logger.train?.({ loss: 2 }, { ...at(3), maxSteps: null });
  logger.event?.({ kind: "measuring", id: "capability", step: 3, done: 1, total: 2 });
  logger.event?.({ kind: "warning", where: "dataset", message: "2 rows left out" });
  expect(terminal.said.map((line) => line.trim())).toEqual([
    expect.stringMatching(/step 3 {2}loss 2\.000$/),
    expect.stringContaining("dataset: 2 rows left out"),
  ]);
});

it("lets training go on where nobody reads standard output any more", async () => {
  const loop = `
    import { consoleLogger } from ${JSON.stringify(new URL("console-logger.ts", import.meta.url).href)};
    const logger = consoleLogger();
    for (let step = 1; step <= 5; step += 1) {
      logger.train({ loss: 1 }, { phase: "em", runStep: step, step, maxSteps: 5, epoch: 0, elapsedSeconds: 1, ended: false });
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    process.stderr.write("trained");
  `;
  const child = spawn(process.execPath, [
    "--import",
    "tsx",
    "-C",
    "@periodic-eval/source",
    "--input-type=module",
    "-e",
    loop,
  ]);
  // As head does once it has its lines.
  child.stdout.destroy();
  let said = "";
  child.stderr.on("data", (text) => (said += text));
  const [code] = (await once(child, "close")) as [number];
  expect([code, said]).toEqual([0, "trained"]);
});
