import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../../../core/src/testing/temporary-folder.test-data.ts";
import { openKeptConfig } from "./kept-config.ts";
import type { TrainConfig } from "./training-file.ts";

it("names file and line of a damaged train.yaml of the run", async () => {
  const folder = temporaryFolder();
  await mkdir(join(folder, "checkpoints"));
  await writeFile(join(folder, "train.yaml"), "model: a\nlora: [\n");
  await expect(openKeptConfig({ run_dir: folder, model: "a" } as TrainConfig)).rejects.toMatchObject({
    code: "config",
    where: `${join(folder, "train.yaml")}:3`,
  });
});
