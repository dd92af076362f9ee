import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { colours } from "../html/style.ts";

/** Pixels per SVG unit: sharp on high-resolution screens and in print. */
const scale = 2;

/** The build copies them into the package. The same path leads there from `src` and from `dist`. */
const fontFiles = ["Inter_400Regular.ttf", "Inter_600SemiBold.ttf"].map(
  (file) => new URL(`../../fonts/${file}`, import.meta.url),
);

type Draw = (svg: string) => Uint8Array;

let drawing: Promise<Draw> | undefined;

/**
 * Returns a function that renders an SVG file as PNG in light mode. It uses a bundled renderer and font, so that the result is
 * the same on every machine. The first call loads both.
 */
export const pngDrawing = (): Promise<Draw> => (drawing ??= load());

async function load(): Promise<Draw> {
  const { resolve } = createRequire(import.meta.url);
  const [{ initWasm, Resvg }, engine, ...fontBuffers] = await Promise.all([
    import("@resvg/resvg-wasm"),
    readFile(resolve("@resvg/resvg-wasm/index_bg.wasm")),
    ...fontFiles.map(async (file) => new Uint8Array(await readFile(file))),
  ]);
  await initWasm(engine);
  return (svg) => {
    const font = { fontBuffers, defaultFontFamily: "Inter", sansSerifFamily: "Inter" };
    const picture = new Resvg(inLightMode(svg), { font, fitTo: { mode: "zoom", value: scale } });
    const rendered = picture.render();
    try {
      return rendered.asPng();
    } finally {
      rendered.free();
      picture.free();
    }
  };
}

const lightColours = new Map(
  [...colours.slice(0, colours.indexOf("@media")).matchAll(/(--[\w-]+): (#\w+)/g)].map(([, name, colour]) => [
    name!,
    colour!,
  ]),
);

/** Replaces CSS variables inside tags, because the renderer does not support them. Leaves text between tags unchanged. */
const inLightMode = (svg: string): string =>
  svg.replaceAll(/<[^<>"]*(?:"[^"]*"[^<>"]*)*>/g, (tag) =>
    tag.replaceAll(/var\((--[\w-]+)\)/g, (variable, name: string) => lightColours.get(name) ?? variable),
  );
