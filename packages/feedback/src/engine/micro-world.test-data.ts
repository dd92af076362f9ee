import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadCausalLM, withLora } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import type { StepLine } from "../harness/files.ts";
import type { LocalEngineOptions } from "./local-engine.ts";

const microWorld = fileURLToPath(new URL("../../../cli/assets/micro-world", import.meta.url));

/** The model that ships with the command line, with an adapter. */
export const microWorldParts: LocalEngineOptions = {
  describe: { model: "micro-world" },
  async openModel({ seed }) {
    const base = await loadCausalLM(microWorld);
    const model = withLora(base, { rank: 8, alpha: 16, seed: String(seed) });
    const dispose = () => {
      model.dispose();
      base.dispose();
    };
    return { model, tokenizer: await loadTokenizer(microWorld), dispose };
  },
};

/** The lines of a run, without what differs from one run to the next. */
export const timelessLines = async (output: string, preference: string) =>
  (await readFile(join(output, preference, "steps.jsonl"), "utf8"))
    .trim()
    .split("\n")
    .map((line) => {
      const { timestamp: _t, timing_s: _s, ...rest } = JSON.parse(line) as StepLine;
      return rest;
    });
