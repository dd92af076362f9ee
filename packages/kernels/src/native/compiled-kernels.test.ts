import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { lanesOf, loadNativeKernels, nativeKernels, type KernelStamp } from "./compiled-kernels.ts";
import { registerNativeKernels } from "./native-kernels.ts";

vi.mock("./native-kernels.ts", () => ({ registerNativeKernels: vi.fn() }));

describe("loadNativeKernels", () => {
  const folder = temporaryFolder(afterAll);
  const name = "@tensorflow/fake-backend";
  const command = "npx periodic-eval native";
  const location = join(folder, "fake-backend", "node_modules", name, "lib", "napi-v8");
  const { file, stampFile, fingerprint, cpuFlags } = nativeKernels();
  const library = "no library";
  const hashText = (text: string) => createHash("sha256").update(text).digest("hex");
  const current = { fingerprint, cpuFlags, compiled: hashText(library), libraries: [] } satisfies KernelStamp;

  /** Loads a file that is no library, with a stamp beside it, and returns the warnings. */
  async function warningsWith(stamp: string): Promise<unknown[][]> {
    await mkdir(location, { recursive: true });
    await writeFile(join(location, file), library);
    await writeFile(join(location, stampFile), stamp);
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    try {
      loadNativeKernels(name, command, folder);
      return warned.mock.calls;
    } finally {
      warned.mockRestore();
    }
  }

  it("loads nothing and does not warn if nothing is compiled", () => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    loadNativeKernels("@tensorflow/missing-backend", command, folder);
    expect(warned).not.toHaveBeenCalled();
    warned.mockRestore();
  });

  it("skips kernels that need a CPU with other instruction sets", async () => {
    expect(await warningsWith(JSON.stringify({ ...current, cpuFlags: `${cpuFlags} another` }))).toEqual([]);
  });

  const damaged = "damaged kernels, or kernels compiled from other source files";
  it.each([
    ["that are damaged", { ...current, compiled: hashText("a library") }, damaged],
    ["that do not load", current, "expected kernels of this version of @periodic-eval/kernels."],
    ["of other source files", { ...current, fingerprint: "another" }, damaged],
    ["without a fingerprint", { ...current, fingerprint: undefined }, damaged],
    ["without CPU flags", { ...current, cpuFlags: undefined }, "expected kernels of this version"],
    ["with an empty stamp", null, damaged],
  ])("warns about kernels %s and goes on without them", async (_, stamp, got) => {
    const [warning, ...rest] = await warningsWith(JSON.stringify(stamp));
    expect(rest).toEqual([]);
    expect(warning).toEqual([expect.stringMatching(`Run \`${command}\``), { code: "PERIODIC_EVAL_KERNELS" }]);
    const [, problem] = (warning![0] as string).split(`${join(location, file)}: got `, 2);
    expect(problem).toContain(got);
    expect(registerNativeKernels).not.toHaveBeenCalled();
  });

  it("warns about a stamp that is cut off", async () => {
    const [warning] = await warningsWith('{"fingerprint":');
    expect(warning![0]).toContain("expected kernels of this version");
  });
});

describe("nativeKernels", () => {
  it("finds the C++ files of the kernels", () => {
    const { source, fingerprint } = nativeKernels();
    expect(existsSync(join(source, "kernels.cc"))).toBe(true);
    expect(fingerprint).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe("lanesOf", () => {
  const header = readFileSync(join(nativeKernels().source, "vectors.h"), "utf8");
  const widths = [
    ...header.matchAll(/^#(?:(?:el)?if defined\(__(\w+)__\)|else)\nconstexpr int lanes = (\d+)/gm),
  ];

  it("knows every width of vectors.h", () => {
    expect(widths.map(([, macro]) => macro)).toEqual(["AVX512F", "AVX", undefined]);
    expect([...header.matchAll(/\blanes = /g)]).toHaveLength(widths.length);
  });

  it.each(widths.map(([, macro, lanes]) => [macro, Number(lanes)] as const))(
    "returns the width of vectors.h with %s: %d",
    (macro, lanes) => {
      // A CPU has the narrower instruction sets too.
      const flags = widths
        .slice(widths.findIndex(([, flag]) => flag === macro))
        .map(([, flag]) => flag ?? "neon");
      expect(lanesOf(["sse2", ...flags.map((flag) => flag.toLowerCase())])).toBe(lanes);
    },
  );
});
