// Builds the example into a static folder with relative addresses only: `npm run browser` calls it.
import { pageStyle } from "@periodic-eval/dashboard/page";
import { build, type BuildOptions } from "esbuild";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const webgpuPackage = "@tensorflow/tfjs-backend-webgpu";

/** Returns the folder of an installed package. */
const packageFolder = (name: string): string =>
  dirname(createRequire(here("../../packages/models/package.json")).resolve(`${name}/package.json`));

/** The options of every bundle for browsers. */
export const bundleOptions: BuildOptions = {
  bundle: true,
  platform: "browser",
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  logLevel: "warning",
  conditions: ["@periodic-eval/source"],
};

/**
 * @param folder Is replaced.
 * @param webgpu The folder of TensorFlow.js' WebGPU backend; null for a page without WebGPU.
 */
export async function buildExample(folder: string, webgpu: string | null): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const imports = [...(webgpu === null ? [] : [webgpuPackage]), "./worker.ts"];
  await build({ ...bundleOptions, entryPoints: [here("page.ts")], outfile: join(folder, "page.js") });
  await build({
    ...bundleOptions,
    stdin: {
      // The backend registers itself.
      contents: imports.map((name) => `import ${JSON.stringify(name)};`).join("\n"),
      resolveDir: here("."),
    },
    // The backend's folder may have no TensorFlow.js of its own: two would register separate backends.
    alias: {
      "@tensorflow/tfjs-core": packageFolder("@tensorflow/tfjs-core"),
      ...(webgpu !== null && { [webgpuPackage]: webgpu }),
    },
    outfile: join(folder, "worker.js"),
  });
  await writeFile(join(folder, "page.css"), pageStyle + (await readFile(here("page.css"), "utf8")));
  await cp(here("index.html"), join(folder, "index.html"));
  // The worker looks for them beside itself.
  const wasm = join(packageFolder("@tensorflow/tfjs-backend-wasm"), "dist");
  for (const name of ["tfjs-backend-wasm.wasm", "tfjs-backend-wasm-simd.wasm"])
    await cp(join(wasm, name), join(folder, name));
  const world = here("../../packages/cli/assets/micro-world");
  await cp(world, join(folder, "micro-world"), { recursive: true });
}

if (process.argv[1] === here("build.ts")) {
  const [folder, webgpu = null] = process.argv.slice(2);
  await buildExample(folder!, webgpu);
}
