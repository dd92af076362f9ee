import { existsSync } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { nativeBackendFolder } from "@periodic-eval/models";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { runCommand } from "../../run-command.test-data.ts";
import { recordingTerminal } from "../../terminal/recording-terminal.test-data.ts";
import { driverWarning, parseDriverVersion, type Machine } from "./machine.ts";
import { compileKernels } from "./binding.ts";
import { buildNative } from "./command.ts";

const folder = temporaryFolder(afterAll);
const cache = join(folder, "cache");

const machine: Machine = {
  platform: "linux",
  arch: "x64",
  freeBytes: () => 100e9,
  driverVersion: () => "535.104.05",
};

/** Starts a build that is expected to fail before it downloads or removes anything. */
async function failureOn(changed: Partial<Machine>, gpu: boolean) {
  const terminal = recordingTerminal();
  const build = buildNative({ gpu, force: false, cache }, terminal, { ...machine, ...changed });
  const error: unknown = await build.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(existsSync(cache) ? await readdir(cache) : []).toEqual([]);
  return { error, printed: terminal.errors.join("\n") };
}

describe("native", () => {
  afterEach(() => void vi.unstubAllEnvs());

  it.runIf(process.platform === "linux")(
    "without a C++ compiler ends before any download, with the package to install",
    async () => {
      // A folder without programs.
      await mkdir(join(folder, "bin"), { recursive: true });
      vi.stubEnv("PATH", join(folder, "bin"));
      vi.stubEnv("CXX", "");
      const { code, err } = await runCommand(["native", "--cache", cache]);
      expect(code).toBe(1);
      expect(err).toMatch(
        /^\[periodic-eval\] C\+\+ compiler: got neither \$CXX .* \(Debian: `apt-get install g\+\+`\)/,
      );
      expect(existsSync(cache)).toBe(false);
    },
  );

  it.each([
    [false, "1.0 GB of free disk", "1.1 GB"],
    [true, "4.5 GB of free disk", "4.6 GB"],
  ])(
    "with too little disk ends before any download, with the size that it needs (gpu: %s)",
    async (gpu, got, expected) => {
      const { error } = await failureOn({ freeBytes: () => (gpu ? 4.5e9 : 1e9) }, gpu);
      expect(error).toMatchObject({ code: "config", where: cache, got, expected });
      expect(error).toMatchObject({ fix: expect.stringContaining("--cache FOLDER") as string });
    },
  );

  it("with too little disk for the project's copy ends before any download", async () => {
    const { error } = await failureOn({ freeBytes: (at) => (at === cache ? 100e9 : 1e7) }, false);
    expect(error).toMatchObject({
      code: "config",
      where: nativeBackendFolder(),
      got: "0.0 GB of free disk",
      expected: "0.2 GB",
      fix: "Free some space.",
    });
  });

  it.each([
    [null, "none", "Install NVIDIA's driver"],
    ["470.57.02", "470.57.02", "Update NVIDIA's driver"],
    ["525.60.11", "525.60.11", "Update NVIDIA's driver"],
  ])("with NVIDIA's driver %s warns that the backend computes on the CPU", async (version, got, fix) => {
    const { printed } = await failureOn({ driverVersion: () => version, freeBytes: () => 0 }, true);
    expect(printed).toContain(`NVIDIA's driver: got ${got}, expected 525.60.13 or newer`);
    expect(printed).toContain(fix);
    expect(printed).toContain("until then this backend computes on the CPU");
  });

  it("accepts newer drivers, and needs none without --gpu", async () => {
    expect(["525.60.13", "535.54", "570.124.06"].map(driverWarning)).toEqual([null, null, null]);
    const { printed } = await failureOn({ driverVersion: () => null, freeBytes: () => 0 }, false);
    expect(printed).toBe("");
  });

  it.each([
    ["NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.57.02  Tue Jul 13 16:14:05 UTC 2021", "470.57.02"],
    [
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build  (dvs)",
      "570.124.06",
    ],
    ["NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  575.57  Release Build", "575.57"],
    ["GCC version:  gcc version 12.2.0", null],
  ])("reads the driver's version in %s", (text, version) => {
    expect(parseDriverVersion(text)).toBe(version);
  });

  it.each([
    ["darwin", "arm64", false, "linux"],
    ["linux", "riscv64", false, "linux on x64 or arm64"],
    ["linux", "arm64", true, "linux on x64"],
  ])(
    "rejects %s on %s (gpu: %s), for which TensorFlow has no wheel",
    async (platform, arch, gpu, expected) => {
      const { error } = await failureOn({ platform, arch }, gpu);
      expect(error).toMatchObject({ code: "config", got: `${platform} on ${arch}`, expected });
    },
  );

  it("removes with --force only what it downloaded for this backend", async () => {
    const used = join(folder, "used");
    const own = ["libtensorflow-2.15.1", "tfjs-node-4.22.0", "tfjs-4.22.0"];
    const others = ["libtensorflow-gpu-2.15.1", "tfjs-node-gpu-4.22.0", "photos"];
    for (const name of [...own, ...others]) await mkdir(join(used, name), { recursive: true });
    const options = { gpu: false, force: true, cache: used };
    const build = buildNative(options, recordingTerminal(), { ...machine, freeBytes: () => 0 });
    await expect(build).rejects.toMatchObject({ code: "config", where: used });
    expect((await readdir(used)).toSorted()).toEqual(others.toSorted());
  });

  it.each([
    ["", join(folder, "home", ".cache")],
    ["relative", join(folder, "home", ".cache")],
    [join(folder, "xdg"), join(folder, "xdg")],
  ])('with XDG_CACHE_HOME "%s" keeps its cache in %s', async (variable, parent) => {
    // A build in the user's own folder would make the build succeed.
    for (const name of ["HOME", "USERPROFILE"]) vi.stubEnv(name, join(folder, "home"));
    vi.stubEnv("XDG_CACHE_HOME", variable);
    const options = { gpu: false, force: false };
    const build = buildNative(options, recordingTerminal(), { ...machine, freeBytes: () => 0 });
    const where = join(parent, "periodic-eval", "native");
    await expect(build).rejects.toMatchObject({ code: "config", where });
  });

  it("reports kernels that do not compile, and leaves a backend without them", async () => {
    const root = join(folder, "backend");
    const terminal = recordingTerminal();
    const tools = { compiler: join(folder, "no compiler"), headers: folder };
    compileKernels(root, { libraries: [], include: folder }, tools, terminal);
    expect(terminal.errors.join("\n")).toContain("the kernels for native TensorFlow");
    expect(existsSync(root)).toBe(false);
  });

  it("rejects a folder without TensorFlow's library", async () => {
    await mkdir(join(folder, "empty"), { recursive: true });
    const { code, err } = await runCommand([
      "native",
      "--cache",
      cache,
      "--libtensorflow",
      join(folder, "empty"),
    ]);
    expect(code).toBe(1);
    expect(err).toContain("got a folder without TensorFlow's C library");
  });
});
