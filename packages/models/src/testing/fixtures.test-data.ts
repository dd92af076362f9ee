import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { findFixtures } from "../../../testing/src/fixtures.test-data.ts";
import type { HuggingFaceConfig } from "../families/config/config-reader.ts";

/** The folder of SmolLM2-135M-Instruct, 270 MB, from `../shared/tools/get-smollm2.sh FOLDER`. It may be missing. */
export const smollm2 = process.env["PERIODIC_EVAL_SMOLLM2"] ?? ".cache/smollm2-135m-instruct";

/** A model with logits from transformers. */
export interface ModelFixture {
  readonly name: string;
  readonly folder: string;
  readonly config: HuggingFaceConfig;
}

/** All such models, sorted by name. */
export const modelFixtures: readonly ModelFixture[] = findFixtures(/^[^/]+\/expected\.safetensors$/)
  .map((path) => {
    const folder = dirname(path);
    const config = JSON.parse(readFileSync(join(folder, "config.json"), "utf8")) as HuggingFaceConfig;
    return { name: basename(folder), folder, config };
  })
  .toSorted((a, b) => (a.name < b.name ? -1 : 1));

/** Returns the float32 models of a family whose configuration has these options. */
export const float32Fixtures = (
  modelType: string,
  options: Readonly<Record<string, unknown>> = {},
): readonly ModelFixture[] =>
  modelFixtures.filter(
    ({ config }) =>
      config["model_type"] === modelType &&
      (config["dtype"] ?? config["torch_dtype"]) === "float32" &&
      Object.entries(options).every(([key, value]) => config[key] === value),
  );

/** All tokenizers with ids from transformers. */
export const tokenizerFixtures = findFixtures(/^[^/]+\/expected\.json$/)
  .map((path) => ({ name: basename(dirname(path)), folder: dirname(path) }))
  .filter(({ folder }) => existsSync(join(folder, "tokenizer.json")));
