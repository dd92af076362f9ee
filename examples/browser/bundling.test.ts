import { build as buildWithEsbuild } from "esbuild";
import { isBuiltin } from "node:module";
import { fileURLToPath } from "node:url";
import { build as buildWithVite, type Rolldown } from "vite";
import { describe, expect, it } from "vitest";
import { bundleOptions } from "./build.ts";

const here = fileURLToPath(new URL(".", import.meta.url));

/** Everything that runs in browsers. */
const entries = [
  "@periodic-eval/core",
  "@periodic-eval/core/browser",
  "@periodic-eval/core/evaluations",
  "@periodic-eval/core/grading",
  "@periodic-eval/core/session",
  "@periodic-eval/core/snapshots",
  "@periodic-eval/core/testing",
  "@periodic-eval/core/tfjs",
  "@periodic-eval/models",
  "@periodic-eval/models/tokenizer",
  "@periodic-eval/safetensors",
  "@periodic-eval/trainers",
  "@periodic-eval/dashboard/page",
] as const;

describe("bundling for browsers", () => {
  it.each(entries)("leaves no import of Node in %s, with esbuild", async (entry) => {
    const { metafile, warnings } = await buildWithEsbuild({
      ...bundleOptions,
      stdin: { contents: `export * from ${JSON.stringify(entry)};`, resolveDir: here },
      metafile: true,
      write: false,
      outfile: "bundle.js",
    });
    const imports = Object.values(metafile.inputs).flatMap((input) => input.imports);
    expect(imports.filter(({ path }) => isBuiltin(path))).toEqual([]);
    expect(warnings).toEqual([]);
  });

  it("leaves no import of Node, with Vite", async () => {
    const entry = `${here}entries.js`;
    const [warnings, builtins]: [string[], string[]] = [[], []];
    const outputs = (await buildWithVite({
      configFile: false,
      root: here,
      logLevel: "silent",
      resolve: { conditions: ["@periodic-eval/source", "module", "browser", "production"] },
      plugins: [
        {
          name: "entries",
          enforce: "pre",
          resolveId(source, importer) {
            if (isBuiltin(source)) builtins.push(`${source} in ${importer?.split("node_modules/").at(-1)}`);
            return source === entry ? source : null;
          },
          load: (file) =>
            file === entry
              ? entries.map((name, at) => `export * as _${at} from ${JSON.stringify(name)};`).join("\n")
              : null,
        },
      ],
      build: {
        write: false,
        minify: false,
        lib: { entry, formats: ["es"], fileName: "bundle" },
        rolldownOptions: {
          onwarn: ({ code, message }) => code !== "INEFFECTIVE_DYNAMIC_IMPORT" && warnings.push(message),
        },
      },
    })) as readonly Rolldown.RolldownOutput[];
    const chunks = outputs.flatMap(({ output }) => output).filter((one) => one.type === "chunk");
    const imports = chunks.flatMap((chunk) => [...chunk.imports, ...chunk.dynamicImports]);
    expect(imports.filter((path) => isBuiltin(path))).toEqual([]);
    // These libraries say in their package.json that browsers need nothing in its place.
    expect(builtins.filter((one) => !/ in (seedrandom|@tensorflow)\//.test(one))).toEqual([]);
    const modules = chunks.flatMap(({ moduleIds }) => moduleIds);
    expect(modules.some((module) => module.endsWith("platform/browser/files.ts"))).toBe(true);
    expect(warnings).toEqual([]);
  });
});
