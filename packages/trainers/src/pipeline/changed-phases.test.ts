import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { tinyLM } from "../testing/tiny-lm.test-data.ts";
import {
  busyConfig,
  recording,
  rows,
  temporaryFolder,
  tokenizer,
  ungoverned,
  useWasm,
} from "../testing/tiny-run.test-data.ts";
import type { SFTPhase } from "./phases.ts";
import { runPipeline } from "./run-pipeline.ts";

beforeAll(useWasm);

const phaseOf = (phase: string, maxSteps = 3): SFTPhase => ({
  phase,
  dataset: rows(20, phase),
  config: { maxSteps, schedule: "constant" },
});
const [coupling, mid, em] = [phaseOf("coupling"), phaseOf("mid"), phaseOf("em", 4)];

async function run(runDir: string, phases: readonly SFTPhase[], resume: "auto" | "never" = "auto") {
  const model = tinyLM({ vocabSize: tokenizer.vocabSize });
  const logger = recording();
  const config = { ...busyConfig, saveSteps: 1, keepCheckpoints: 99 };
  const loggers = [logger];
  try {
    const options = { model, tokenizer, runDir, config, session: ungoverned, loggers, resume };
    const results = await runPipeline(phases, options);
    return { results, trained: logger.metrics.length };
  } finally {
    model.dispose();
  }
}

async function filesOf(runDir: string): Promise<Record<string, string>> {
  const entries = await readdir(runDir, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const texts = await Promise.all(files.map(async (file) => [file, await readFile(file, "hex")] as const));
  return Object.fromEntries(texts);
}

describe("a pipeline whose phases differ from those of the run", () => {
  it.each<[string, readonly SFTPhase[], string, string, string]>([
    ["inserted", [coupling, mid, em], "em", 'after "coupling", "mid"', 'after "coupling"'],
    ["removed", [em], "em", "as the first phase", 'after "coupling"'],
    ["swapped", [em, coupling], "em", "as the first phase", 'after "coupling"'],
    ["put first", [mid, coupling], "coupling", 'after "mid"', "as the first phase"],
  ])("throws before a step and changes nothing if a phase was %s", async (_, phases, name, got, expected) => {
    const runDir = await temporaryFolder();
    await run(runDir, [coupling, em]);
    for (const isHalfWay of [false, true]) {
      if (isHalfWay) await rm(join(runDir, "checkpoints/em/step_4"), { recursive: true });
      const before = await filesOf(runDir);
      await expect(run(runDir, phases)).rejects.toMatchObject({
        where: join(runDir, "checkpoints", name),
        got: `phase "${name}" ${got}`,
        expected: `${expected}, as in its checkpoint`,
        fix: expect.stringMatching(/^Restore the order of the phases/),
      });
      expect(await filesOf(runDir)).toEqual(before);
    }
    expect((await run(runDir, phases, "never")).results.map(({ resumedFrom }) => resumedFrom)).toEqual(
      phases.map(() => null),
    );
  });

  it("continues with new phases after those that have begun, and with a renamed last phase", async () => {
    const runDir = await temporaryFolder();
    await run(runDir, [coupling, em]);
    expect(await run(runDir, [coupling, em, mid])).toMatchObject({
      trained: 3,
      results: [{ resumedFrom: 3 }, { resumedFrom: 4 }, { resumedFrom: null }],
    });
    expect((await run(runDir, [coupling, mid, { ...em, phase: "em2" }], "never")).trained).toBe(10);
  });

  it("throws if an earlier phase left other weights, and keeps the later phase's checkpoints", async () => {
    const runDir = await temporaryFolder();
    await run(runDir, [coupling, em]);
    const kept = await filesOf(join(runDir, "checkpoints/em"));
    await expect(run(runDir, [phaseOf("coupling", 5), em])).rejects.toMatchObject({
      where: expect.stringMatching(/step_4$/),
      got: 'phase "em" starting from other weights than "coupling" left when the checkpoint was written',
    });
    expect(await filesOf(join(runDir, "checkpoints/em"))).toEqual(kept);
  });
});

describe("a finished phase with a damaged checkpoint", () => {
  const damage = async (runDir: string, file: string) => {
    const path = join(runDir, "checkpoints/coupling/step_3", file);
    for (const step of [1, 2])
      await rm(join(runDir, `checkpoints/coupling/step_${step}`), { recursive: true });
    await writeFile(path, (await readFile(path, "hex")).slice(2), "hex");
  };

  it("is an error", async () => {
    const runDir = await temporaryFolder();
    await run(runDir, [coupling]);
    await damage(runDir, "trainables.safetensors");
    await expect(run(runDir, [coupling, em])).rejects.toMatchObject({
      got: "no complete checkpoint (step_3: trainables.safetensors was changed)",
    });
  });
});
