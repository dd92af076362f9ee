import * as tf from "@tensorflow/tfjs-core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { useBackend } from "./use-backend.ts";

describe("useBackend", () => {
  beforeEach(() => void vi.stubEnv("PERIODIC_EVAL_BACKEND", ""));
  afterEach(() => void vi.unstubAllEnvs());

  it("starts the one asked for, the option before the environment", async () => {
    vi.stubEnv("PERIODIC_EVAL_BACKEND", "cpu");
    expect(await useBackend()).toEqual({ name: "cpu", tfBackend: "cpu", unusable: [] });
    expect(await useBackend({ backend: "wasm" })).toEqual({ name: "wasm", tfBackend: "wasm", unusable: [] });
    expect(tf.getBackend()).toBe("wasm");
  });

  it("starts the fastest that is there where none is asked for", async () => {
    const { name, tfBackend } = await useBackend();
    // Native engines are optional: whatever is installed, it is never slower than wasm.
    expect(name).not.toBe("cpu");
    expect(tf.getBackend()).toBe(tfBackend);
  });

  it("refuses an option that it does not know: it would start another engine", async () => {
    await expect(useBackend({ engine: "cpu" } as object)).rejects.toThrow(
      'useBackend: got the unknown option "engine", expected one of backend',
    );
  });

  it("names what is wrong with one that it cannot start", async () => {
    await expect(useBackend({ backend: "wsam" })).rejects.toThrow(
      /backend: got wsam, expected tfjs-node-gpu, tfjs-node, webgpu, wasm, cpu/,
    );
    vi.stubEnv("PERIODIC_EVAL_BACKEND", "tfjs-node-gpu");
    await expect(useBackend()).rejects.toThrow(
      /PERIODIC_EVAL_BACKEND tfjs-node-gpu: got .*Run `npm install @tensorflow\/tfjs-node-gpu`/,
    );
  });

  it("points to the script that makes tfjs-node work, in this repository", async () => {
    vi.doMock("./engine.ts", async (original) => ({
      ...(await original<object>()),
      importOptional: (name: string) =>
        name.endsWith("tfjs-node")
          ? Promise.reject(Object.assign(new Error(`no ${name}`), { code: "MODULE_NOT_FOUND" }))
          : import(name),
    }));
    vi.resetModules();
    try {
      const { useBackend: fresh } = await import("./use-backend.ts");
      await expect(fresh({ backend: "tfjs-node" })).rejects.toThrow(
        "expected the packages @tensorflow/tfjs-node. Run `npm run native`, or choose another backend.",
      );
    } finally {
      vi.doUnmock("./engine.ts");
    }
  });
});
