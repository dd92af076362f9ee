import * as tf from "@tensorflow/tfjs-core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type * as Definition from "./definition.ts";
import type * as InstalledBackends from "./installed-backends.ts";
import { onBackend, useBackend } from "./use-backend.ts";

/** Replaces the import of optional packages; null imports the installed ones. */
const packages = vi.hoisted(() => ({ importOptional: null as ((name: string) => Promise<unknown>) | null }));

// One mock for the whole file: vitest runs vi.unmock and vi.mock concurrently, in either order.
vi.mock("./definition.ts", async (original) => {
  const definition = await original<typeof Definition>();
  return {
    ...definition,
    importOptional: (name: string) => (packages.importOptional ?? definition.importOptional)(name),
  };
});
vi.mock("./installed-backends.ts", async (original) => {
  const backends = await original<typeof InstalledBackends>();
  return {
    ...backends,
    hasBackend: (name: string) => packages.importOptional !== null || backends.hasBackend(name),
  };
});

describe("useBackend", () => {
  beforeEach(() => void vi.stubEnv("PERIODIC_EVAL_BACKEND", ""));
  afterEach(() => void vi.unstubAllEnvs());

  it("starts the requested backend and prefers the option to the environment variable", async () => {
    vi.stubEnv("PERIODIC_EVAL_BACKEND", "cpu");
    expect(await useBackend()).toEqual({ name: "cpu", tfBackend: "cpu", kernels: true, unusable: [] });
    expect(await useBackend({ backend: "wasm" })).toEqual({
      name: "wasm",
      tfBackend: "wasm",
      kernels: true,
      unusable: [],
    });
    expect(tf.getBackend()).toBe("wasm");
  });

  it("starts the fastest installed backend by default", async () => {
    const { name, tfBackend } = await useBackend();
    // Native backends are optional; wasm is always installed, so the default is at least as fast.
    expect(name).not.toBe("cpu");
    expect(tf.getBackend()).toBe(tfBackend);
  });

  it("runs concurrent calls one after the other, also after one that fails", async () => {
    const names = ["cpu", "wasm", "wsam", "cpu", "wasm"];
    const started = await Promise.allSettled(names.map((backend) => useBackend({ backend })));
    expect(started.map((one) => (one.status === "fulfilled" ? one.value.tfBackend : null))).toEqual([
      "cpu",
      "wasm",
      null,
      "cpu",
      "wasm",
    ]);
    expect(tf.getBackend()).toBe("wasm");
  });

  it("starts the same backend for concurrent calls without a name", async () => {
    const [first, second] = await Promise.all([useBackend(), useBackend()]);
    expect(second.name).toBe(first.name);
  });

  it("starts no other backend while a part of this package uses one", async () => {
    const used = () =>
      onBackend(async () => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        return tf.getBackend();
      });
    const [, first, , second] = await Promise.all([
      useBackend({ backend: "cpu" }),
      used(),
      useBackend({ backend: "wasm" }),
      used(),
    ]);
    expect([first, second]).toEqual(["cpu", "wasm"]);
  });

  it("rejects an unknown option, which would start another backend", async () => {
    await expect(useBackend({ engine: "cpu" } as object)).rejects.toMatchObject({
      code: "config",
      path: ["engine"],
      got: 'the unknown option "engine"',
      expected: "one of backend",
    });
  });

  it("rejects an unknown backend and lists the known ones", async () => {
    const expected = '"tfjs-node-gpu" or "tfjs-node" or "webgpu" or "wasm" or "cpu"';
    const error = { code: "config", got: '"wsam"', expected };
    await expect(useBackend({ backend: "wsam" })).rejects.toMatchObject({ ...error, path: ["backend"] });
    vi.stubEnv("PERIODIC_EVAL_BACKEND", "wsam");
    await expect(useBackend()).rejects.toMatchObject({ ...error, where: "PERIODIC_EVAL_BACKEND" });
  });

  it.each([
    [
      "tfjs-node",
      "expected the packages @tensorflow/tfjs-node. Run `npx periodic-eval native`, or choose another",
    ],
    [
      "tfjs-node-gpu",
      "the packages @tensorflow/tfjs-node-gpu. Run `npx periodic-eval native --gpu`, or choose another",
    ],
    [
      "webgpu",
      "the packages webgpu and @tensorflow/tfjs-backend-webgpu. Run `npm install webgpu @tensorflow/tfjs-backend-webgpu`, or choose",
    ],
  ])("names the command that installs %s", async (backend, message) => {
    const missing = Object.assign(new Error("not installed"), { code: "MODULE_NOT_FOUND" });
    await withPackages(
      () => Promise.reject(missing),
      (fresh) => expect(fresh({ backend })).rejects.toThrow(message),
    );
  });

  it.each([
    ["Node", Object.assign(new Error("not installed"), { code: "MODULE_NOT_FOUND" })],
    ["Vite", new Error('Could not resolve "@tensorflow/tfjs-node-gpu" imported by "@periodic-eval/models".')],
  ])("names the environment variable that requests a backend which %s does not find", async (_, missing) => {
    vi.stubEnv("PERIODIC_EVAL_BACKEND", "tfjs-node-gpu");
    await withPackages(
      () => Promise.reject(missing),
      (fresh) =>
        expect(fresh()).rejects.toMatchObject({
          code: "config",
          where: "PERIODIC_EVAL_BACKEND",
          expected: "the packages @tensorflow/tfjs-node-gpu",
        }),
    );
  });

  it("loads one library of native TensorFlow per process, because a second one can crash it", async () => {
    await withPackages(
      () => Promise.resolve({}),
      async (fresh) => {
        await fresh({ backend: "tfjs-node-gpu" }).catch(() => null);
        await expect(fresh({ backend: "tfjs-node" })).rejects.toMatchObject({
          code: "config",
          got: "a process that has loaded @tensorflow/tfjs-node-gpu",
        });
      },
    );
  });

  it("reports a missing GPU driver for webgpu", async () => {
    await withPackages(
      () => Promise.resolve(dawnWith(null)),
      (fresh) =>
        expect(fresh({ backend: "webgpu" })).rejects.toThrow(
          "useBackend options.backend: got webgpu: no driver reports a GPU, expected a backend that starts. Install the GPU's driver",
        ),
    );
  });

  it("passes over a webgpu driver that computes on the CPU", async () => {
    const info = { description: "SwiftShader", isFallbackAdapter: true };
    await withPackages(
      async (name) => (name === "webgpu" ? dawnWith({ info }) : Promise.reject(new Error("broken"))),
      async (fresh) => {
        const { name, unusable } = await fresh();
        expect(name).toBe("wasm");
        expect(unusable.find(({ name }) => name === "webgpu")!.reason).toContain(
          "SwiftShader is not a GPU: it is slower than wasm",
        );
      },
    );
  });
});

const dawnWith = (adapter: object | null) => ({
  globals: {},
  create: () => ({ requestAdapter: () => Promise.resolve(adapter) }),
});

/** Runs `check` with `importOptional` in place of the import of optional packages. */
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
