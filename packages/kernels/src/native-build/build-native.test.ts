import { existsSync } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { compileKernels } from "./binding.ts";
import { buildNative, defaultCache } from "./build-native.ts";
import type { Machine } from "./machine.ts";

const folder = temporaryFolder(afterAll);
const cache = join(folder, "cache");
const silent = { folder, report: () => undefined };

/** A machine on which a build ends before it downloads anything. */
const riscv: Machine = { platform: "linux", arch: "riscv64" };

/** Starts a build that is expected to fail before it downloads or removes anything. */
async function failureOn(machine: Machine, gpu: boolean) {
  const build = buildNative({ gpu, force: false, cache, ...silent }, machine);
  const error: unknown = await build.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(existsSync(cache) ? await readdir(cache) : []).toEqual([]);
  return { error };
}

describe("buildNative", () => {
  afterEach(() => void vi.unstubAllEnvs());

  it.each([
    ["darwin", "arm64", false, "linux"],
    ["linux", "riscv64", false, "linux on x64 or arm64"],
    ["linux", "arm64", true, "linux on x64"],
  ] as const)(
    "rejects %s on %s (gpu: %s), for which TensorFlow has no wheel",
    async (platform, arch, gpu, expected) => {
      const { error } = await failureOn({ platform, arch }, gpu);
      expect(error).toMatchObject({ code: "config", got: `${platform} on ${arch}`, expected });
    },
  );

  it("removes with --force only what it downloaded for this backend", async () => {
    const used = join(folder, "used");
    const current = ["libtensorflow-2.15.1", "tfjs-node-4.22.0", "tfjs-4.22.0"];
    const unrelated = ["libtensorflow-gpu-2.15.1", "tfjs-node-gpu-4.22.0", "photos"];
    for (const name of [...current, ...unrelated]) await mkdir(join(used, name), { recursive: true });
    const options = { gpu: false, force: true, cache: used };
    const build = buildNative({ ...options, ...silent }, riscv);
    await expect(build).rejects.toMatchObject({ code: "config", where: "native" });
    expect((await readdir(used)).toSorted()).toEqual(unrelated.toSorted());
  });

  it.each([
    ["", join(folder, "home", ".cache")],
    ["relative", join(folder, "home", ".cache")],
    [join(folder, "xdg"), join(folder, "xdg")],
  ])('with XDG_CACHE_HOME "%s" keeps its cache in %s', (variable, parent) => {
    for (const name of ["HOME", "USERPROFILE"]) vi.stubEnv(name, join(folder, "home"));
    vi.stubEnv("XDG_CACHE_HOME", variable);
    expect(defaultCache()).toBe(join(parent, "periodic-eval", "native"));
  });

  it("reports kernels that do not compile, and leaves a backend without them", async () => {
    const root = join(folder, "backend");
    const lines: string[] = [];
    const tools = { compiler: join(folder, "no compiler"), headers: folder };
    compileKernels(root, { libraries: [], include: folder }, tools, (line) => lines.push(line));
    expect(lines.join("\n")).toContain("the kernels for native TensorFlow");
    expect(existsSync(root)).toBe(false);
  });
});
