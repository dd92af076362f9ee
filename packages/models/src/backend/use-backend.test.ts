import * as tf from "@tensorflow/tfjs-core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type * as Engine from "./engine.ts";
import { useBackend } from "./use-backend.ts";

/** What stands in the place of the installed optional packages; null: they do. */
const packages = vi.hoisted(() => ({ importOptional: null as ((name: string) => Promise<unknown>) | null }));

// Once for the file: taking a mock back and giving another are carried out side by side, in either order.
vi.mock("./engine.ts", async (original) => {
  const engine = await original<typeof Engine>();
  return {
    ...engine,
    importOptional: (name: string) => (packages.importOptional ?? engine.importOptional)(name),
  };
});

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

  it.each([
    ["tfjs-node", "expected the packages @tensorflow/tfjs-node. Run `npm run native`, or choose another"],
    ["webgpu", "the packages webgpu and @tensorflow/tfjs-backend-webgpu. Run `npm run webgpu`, or choose"],
  ])("points to the script that makes %s work, in this repository", async (backend, said) => {
    const missing = Object.assign(new Error("not installed"), { code: "MODULE_NOT_FOUND" });
    await withPackages(
      () => Promise.reject(missing),
      (fresh) => expect(fresh({ backend })).rejects.toThrow(said),
    );
  });

  it("says what webgpu lacks where no driver knows a GPU", async () => {
    await withPackages(
      () => Promise.resolve(dawnWith(null)),
      (fresh) =>
        expect(fresh({ backend: "webgpu" })).rejects.toThrow(
          "backend webgpu: got no GPU that a driver knows, expected an engine that starts. Install the GPU's driver",
        ),
    );
  });

  it("does not take a driver without a GPU for the fastest", async () => {
    const info = { description: "SwiftShader", isFallbackAdapter: true };
    await withPackages(
      async (name) => (name === "webgpu" ? dawnWith({ info }) : Promise.reject(new Error("broken"))),
      async (fresh) => {
        const { name, unusable } = await fresh();
        expect(name).toBe("wasm");
        expect(unusable.find((engine) => engine.name === "webgpu")!.reason).toContain(
          "SwiftShader is no GPU: it is slower than wasm",
        );
      },
    );
  });
});

const dawnWith = (adapter: object | null) => ({
  globals: {},
  create: () => ({ requestAdapter: () => Promise.resolve(adapter) }),
});

/** Runs with other optional packages than those installed. */
async function withPackages(
  importOptional: (name: string) => Promise<unknown>,
  check: (fresh: typeof useBackend) => Promise<void>,
): Promise<void> {
  vi.stubGlobal("navigator", {});
  packages.importOptional = importOptional;
  vi.resetModules();
  try {
    await check((await import("./use-backend.ts")).useBackend);
  } finally {
    packages.importOptional = null;
    vi.unstubAllGlobals();
  }
}
