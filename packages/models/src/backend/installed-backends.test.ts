import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { hasBackend, nativeBackendFolder } from "./installed-backends.ts";

describe("nativeBackendFolder", () => {
  it("is beside the TensorFlow.js that the backends share", () => {
    expect(existsSync(join(nativeBackendFolder(), "../../@tensorflow/tfjs-core"))).toBe(true);
  });
});

describe("hasBackend", () => {
  const folder = temporaryFolder(afterAll);

  it("finds a backend that `periodic-eval native` placed", async () => {
    const name = "@tensorflow/fake-backend";
    const place = join(folder, "fake-backend", "node_modules", name);
    expect(hasBackend(name, folder)).toBe(false);
    await mkdir(place, { recursive: true });
    await writeFile(join(place, "package.json"), "{}");
    await writeFile(join(place, "index.js"), "");
    expect(hasBackend(name, folder)).toBe(true);
  });
});
