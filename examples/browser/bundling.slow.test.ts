import { build as buildWithEsbuild } from "esbuild";
import { readFile } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { build as buildWithVite, type Rolldown } from "vite";
import { describe, expect, it } from "vitest";
import { bundleOptions } from "./build.ts";

const here = fileURLToPath(new URL(".", import.meta.url));

/** Everything that runs in browsers. */
const entries = JSON.parse(await readFile(`${here}entries.json`, "utf8")) as string[];

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

  it("includes only English of zod's languages, with esbuild", async () => {
    const { metafile } = await buildWithEsbuild({
      ...bundleOptions,
      stdin: { contents: 'export * from "@periodic-eval/core";', resolveDir: here },
      metafile: true,
      write: false,
      outfile: "bundle.js",
    });
    const files = Object.keys(metafile.outputs["bundle.js"]!.inputs);
    const languages = files
      .filter((file) => /\/zod\/.*\/locales\/(?!index)/.test(file))
      .map((file) => basename(file));
    // `import { z } from "zod"` would include all of them.
    expect(languages).toEqual(["en.js"]);
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
