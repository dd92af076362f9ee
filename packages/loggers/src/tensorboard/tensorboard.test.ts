import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Snapshot } from "@periodic-eval/core";
import { describe, expect, it } from "vitest";
import {
  at,
  begins,
  capabilityAt,
  expectedAccuracies,
  expectedLosses,
  logKilledRun,
} from "../logged-run.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { python, pythonHas } from "../python.test-data.ts";
import { tensorBoardLogger } from "./index.ts";
import { readScalars, scalarKey } from "./read-scalars.ts";

type Curves = Readonly<Record<string, readonly (readonly [step: number, value: number | string])[]>>;

/** Reads the curves that TensorBoard shows, by phase. */
function readBack(logDir: string): Readonly<Record<string, Curves>> {
  const script = `
import json, os, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
words = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
runs = {}
for phase in os.listdir(sys.argv[1]):
    events = EventAccumulator(os.path.join(sys.argv[1], phase), size_guidance={"scalars": 0}).Reload()
    runs[phase] = {tag: [(e.step, words.get(str(e.value), e.value)) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
print(json.dumps(runs))`;
  return JSON.parse(
    execFileSync(python, ["-c", script, logDir], { encoding: "utf8", stdio: "pipe" }),
  ) as Record<string, Curves>;
}

const needs = "PERIODIC_EVAL_PEERS_PYTHON must be a Python with tensorboard";
describe.skipIf(!pythonHas("tensorboard"))(`TensorBoard reads the event files (${needs})`, () => {
  it("with each step and snapshot of a killed run once, and late grading at its own step", async () => {
    const logDir = join(temporaryFolder(), "tensorboard");
    await logKilledRun(
      () => tensorBoardLogger({ logDir }),
      () => {
        // Append a record that is cut off.
        const phase = existsSync(join(logDir, "em")) ? "em" : "coupling";
        const [last] = readdirSync(join(logDir, phase)).toSorted().slice(-1);
        appendFileSync(join(logDir, phase, last!), new Uint8Array(9));
      },
    );
    const { coupling, em } = readBack(logDir);
    const losses = [...coupling!["train/loss"]!, ...em!["train/loss"]!].map(([step, value]) => [
      step,
      Number(value),
    ]);
    expect(losses).toEqual(expectedLosses);
    expect(coupling!["periodic_eval/arc_c_accuracy"]).toEqual(expectedAccuracies.coupling);
    expect(em!["periodic_eval/arc_c_accuracy"]).toEqual(expectedAccuracies.em);
    expect(em!["periodic_eval/arc_c_correct"]!.slice(0, 3)).toEqual([
      [10, 2],
      [12, 3],
      [15, 1],
    ]);
    expect(em!["periodic_eval/train_pct"]!.slice(0, 3)).toEqual([
      [10, 0],
      [12, 20],
      [15, 50],
    ]);
  });

  it("with any name and any float32 value", async () => {
    const logDir = temporaryFolder();
    const logger = tensorBoardLogger({ logDir });
    const values = { "größe & co": 0.1, huge: 1e300, tiny: -1e-45, no: Number.NEGATIVE_INFINITY };
    await logger.train?.(values, at("a", 3, 2 ** 40));
    await logger.close?.();
    const { a } = readBack(logDir);
    // 0.1 and −1e−45 are rounded to float32; 1e300 overflows.
    expect(Object.entries(a!).map(([name, [point]]) => [name, point![0], String(point![1])])).toEqual([
      ["train/größe & co", 2 ** 40, String(Math.fround(0.1))],
      ["train/huge", 2 ** 40, "Infinity"],
      ["train/tiny", 2 ** 40, String(Math.fround(-1e-45))],
      ["train/no", 2 ** 40, "-Infinity"],
    ]);
  });
});

it("writes only the valid snapshots that a killed process did not write", async () => {
  const logDir = temporaryFolder();
  const files = () => readdirSync(join(logDir, "a")).length;
  const [at2, at4, at6] = [2, 4, 6].map((step) => capabilityAt("a", step, step, 0.7));
  const resume = async (standing: readonly Snapshot[]) => {
    const logger = tensorBoardLogger({ logDir });
    await logger.begin?.(begins("b", 1, { standing }));
    await logger.close?.();
  };
  const first = tensorBoardLogger({ logDir });
  await first.begin?.(begins("a", 0));
  for (const snapshot of [at2!, at6!]) await first.snapshot?.(snapshot);
  await first.begin?.(begins("a", 2));
  await first.close?.();
  expect(files()).toBe(1);
  const tag = "periodic_eval/arc_c_accuracy";
  const wanted = [2, 4, 6].map((step) => scalarKey(step, tag));
  const read = () => readScalars(join(logDir, "a"), new Set(wanted));
  // Step 6 belongs to the interrupted training.
  expect([...read()]).toEqual([[wanted[0], Math.fround(0.7)]]);
  await resume([at2!]);
  expect(files()).toBe(1);
  await resume([at2!, at4!]);
  expect(files()).toBe(2);
  expect([...read().keys()]).toEqual(wanted.slice(0, 2));
  await resume([at2!, at4!]);
  expect(files()).toBe(2);
});

it("writes again the snapshots that TensorBoard does not read, because an earlier record is damaged", async () => {
  const logDir = temporaryFolder();
  const folder = join(logDir, "a");
  const snapshots = [2, 4].map((step) => capabilityAt("a", step, step, 0.7));
  const tag = "periodic_eval/arc_c_accuracy";
  const wanted = [2, 4].map((step) => scalarKey(step, tag));
  const read = () => [...readScalars(folder, new Set(wanted)).keys()];
  const first = tensorBoardLogger({ logDir });
  await first.begin?.(begins("a", 0));
  for (const snapshot of snapshots) await first.snapshot?.(snapshot);
  await first.close?.();
  expect(read()).toEqual(wanted);
  const file = join(folder, readdirSync(folder)[0]!);
  const bytes = readFileSync(file);
  // The first letter of the first snapshot's tag. The record stays valid as a message, but not by its checksum.
  bytes[bytes.indexOf(tag)] = "q".charCodeAt(0);
  writeFileSync(file, bytes);
  expect(read()).toEqual([]);
  const resumed = tensorBoardLogger({ logDir });
  await resumed.begin?.(begins("b", 1, { standing: snapshots }));
  await resumed.close?.();
  expect(readdirSync(folder)).toHaveLength(2);
  expect(read()).toEqual(wanted);
});
