import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorMessage } from "@periodic-eval/contracts/options";
import { afterAll, beforeAll, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { withLora, type LoraOptions } from "../lora/with-lora.ts";
import { tinyConfigs } from "../testing/tiny-config.test-data.ts";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import { outlineCausalLM } from "./outline.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);
beforeAll(async () => {
  await useBackend({ backend: "cpu" });
});

const errorFrom = (check: () => { dispose(): void } | void): string => {
  try {
    check()?.dispose();
    return "nothing";
  } catch (error) {
    return errorMessage(error);
  }
};

it.each(Object.entries(tinyConfigs))(
  "reports the facts and errors of %s without its weights",
  async (_, config) => {
    await writeFile(join(folder, "config.json"), JSON.stringify(config));
    const outline = await outlineCausalLM(folder);
    const model = createCausalLM(config, { seed: "0" });
    const { vocabSize, contextLength, takesDocuments } = model;
    expect(outline).toMatchObject({ vocabSize, contextLength, takesDocuments });
    expect(() => outline.hiddenStates()).toThrow("the weights are not loaded");
    // The errors for the last four contain names and sizes of linear maps.
    const cases: readonly LoraOptions[] = [
      {},
      { rank: 0 },
      { layersToTransform: [99] },
      { targetModules: ["none_such"] },
      { rank: 4096 },
      { targetModules: ".*embed.*" },
    ];
    for (const options of cases)
      expect(errorFrom(() => outline.checkLora(options))).toBe(errorFrom(() => withLora(model, options)));
    expect(errorFrom(() => outline.checkLora({ rank: 4096 }))).toContain("rank: got 4096, expected at most");
    model.dispose();
  },
);

it("throws for a folder without a configuration or of an unsupported family, as loading does", async () => {
  await rm(join(folder, "config.json"), { force: true });
  await expect(outlineCausalLM(folder)).rejects.toThrow("config.json: got no such file");
  await writeFile(join(folder, "config.json"), JSON.stringify({ model_type: "bert" }));
  await expect(outlineCausalLM(folder)).rejects.toThrow('model_type: got "bert"');
});
