import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { runCommand } from "../../run-command.test-data.ts";

const folder = temporaryFolder(afterAll);
const cache = join(folder, "cache");

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
