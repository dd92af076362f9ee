import type * as esbuild from "esbuild";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";

const here = import.meta.url;
const isSource = extname(here) === ".ts";
let loaded: string | undefined;

/**
 * Returns the script of the pages: the file that the build bundles; in a process that runs from source, such as a test, a fresh
 * bundle.
 */
export function clientScript(): string {
  return (loaded ??= isSource ? bundleClient() : readFileSync(new URL("../client.js", here), "utf8"));
}

/** Bundles the files of `client/` into one script. Needs the development dependency esbuild. */
export function bundleClient(): string {
  const { buildSync } = createRequire(here)("esbuild") as typeof esbuild;
  const { outputFiles } = buildSync({
    entryPoints: [fileURLToPath(new URL(`../client/main${extname(here)}`, here))],
    bundle: true,
    ...(isSource && { conditions: ["@periodic-eval/source"] }),
    format: "iife",
    minify: true,
    target: "es2022",
    legalComments: "none",
    write: false,
  });
  return outputFiles[0]!.text.trim();
}
