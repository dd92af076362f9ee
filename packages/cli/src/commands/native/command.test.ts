import { existsSync } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { runCommand } from "../../run-command.test-data.ts";
import { recordingTerminal } from "../../terminal/recording-terminal.test-data.ts";
import type { Machine } from "./machine.ts";
import { compileKernels } from "./binding.ts";
import { buildNative, defaultCache } from "./command.ts";

const folder = temporaryFolder(afterAll);
const cache = join(folder, "cache");

/** A machine on which a build ends before it downloads anything. */
const riscv: Machine = { platform: "linux", arch: "riscv64" };

/** Starts a build that is expected to fail before it downloads or removes anything. */
async function failureOn(machine: Machine, gpu: boolean) {
  const build = buildNative({ gpu, force: false, cache }, recordingTerminal(), machine);
  const error: unknown = await build.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(existsSync(cache) ? await readdir(cache) : []).toEqual([]);
  return { error };
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
    const own = ["libtensorflow-2.15.1", "tfjs-node-4.22.0", "tfjs-4.22.0"];
    const others = ["libtensorflow-gpu-2.15.1", "tfjs-node-gpu-4.22.0", "photos"];
    for (const name of [...own, ...others]) await mkdir(join(used, name), { recursive: true });
    const options = { gpu: false, force: true, cache: used };
    const build = buildNative(options, recordingTerminal(), riscv);
    await expect(build).rejects.toMatchObject({ code: "config", where: "native" });
    expect((await readdir(used)).toSorted()).toEqual(others.toSorted());
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
