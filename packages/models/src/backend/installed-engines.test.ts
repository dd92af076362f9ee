import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../core/src/testing/temporary-folder.test-data.ts";
import { hasEngine, nativeEngineFolder } from "./installed-engines.ts";

describe("nativeEngineFolder", () => {
  it("is beside the TensorFlow.js that the engines share", () => {
    expect(existsSync(join(nativeEngineFolder(), "../../@tensorflow/tfjs-core"))).toBe(true);
  });
});

describe("hasEngine", () => {
  const folder = temporaryFolder(afterAll);

  it("finds an engine that `periodic-eval native` placed", async () => {
    const name = "@tensorflow/fake-engine";
    const place = join(folder, "fake-engine", "node_modules", name);
    expect(hasEngine(name, folder)).toBe(false);
    await mkdir(place, { recursive: true });
    await writeFile(join(place, "package.json"), "{}");
    await writeFile(join(place, "index.js"), "");
    expect(hasEngine(name, folder)).toBe(true);
  });
});
