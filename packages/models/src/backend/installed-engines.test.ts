import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../core/src/testing/temporary-folder.test-data.ts";
import { hasEngine, loadNativeKernels, nativeEngineFolder, nativeKernels } from "./installed-engines.ts";

describe("nativeEngineFolder", () => {
  it("is beside the TensorFlow.js that the backends share", () => {
    expect(existsSync(join(nativeEngineFolder(), "../../@tensorflow/tfjs-core"))).toBe(true);
  });
});

describe("hasEngine", () => {
  const folder = temporaryFolder(afterAll);

  it("finds a backend that `periodic-eval native` placed", async () => {
    const name = "@tensorflow/fake-engine";
    const place = join(folder, "fake-engine", "node_modules", name);
    expect(hasEngine(name, folder)).toBe(false);
    await mkdir(place, { recursive: true });
    await writeFile(join(place, "package.json"), "{}");
    await writeFile(join(place, "index.js"), "");
    expect(hasEngine(name, folder)).toBe(true);
  });
});

describe("loadNativeKernels", () => {
  const folder = temporaryFolder(afterAll);

  it("loads kernels for the instructions of this processor only", async () => {
    const { file, stampFile, processor } = nativeKernels();
    const name = "@tensorflow/fake-engine";
    const place = join(folder, "fake-engine", "node_modules", name, "lib", "napi-v8");
    await mkdir(place, { recursive: true });
    await writeFile(join(place, file), "no library");
    await writeFile(join(place, stampFile), JSON.stringify({ processor: `${processor} another` }));
    expect(() => loadNativeKernels(name, folder)).not.toThrow();
    await writeFile(join(place, stampFile), JSON.stringify({ processor }));
    expect(() => loadNativeKernels(name, folder)).toThrow(file);
  });

  it("finds the source of the kernels", () => {
    expect(existsSync(join(nativeKernels().source, "kernels.cc"))).toBe(true);
  });
});
