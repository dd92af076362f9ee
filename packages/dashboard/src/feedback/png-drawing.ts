import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { colours } from "../html/style.ts";

/** Of a drawing's width: sharp on screens of twice the pixels, and in print. */
const scale = 2;

const fontFiles = [
  "@expo-google-fonts/inter/400Regular/Inter_400Regular.ttf",
  "@expo-google-fonts/inter/600SemiBold/Inter_600SemiBold.ttf",
];

type Draw = (svg: string) => Uint8Array;

let drawing: Promise<Draw> | undefined;

/**
 * What makes a PNG file of a drawing that is an SVG file, by day, on every machine the same: with a renderer and a font of its
 * own. Loaded once, where the first is asked for.
 */
export const pngDrawing = (): Promise<Draw> => (drawing ??= load());

async function load(): Promise<Draw> {
  const { resolve } = createRequire(import.meta.url);
  const [{ initWasm, Resvg }, engine, ...fontBuffers] = await Promise.all([
    import("@resvg/resvg-wasm"),
    readFile(resolve("@resvg/resvg-wasm/index_bg.wasm")),
    ...fontFiles.map(async (file) => new Uint8Array(await readFile(resolve(file)))),
  ]);
  await initWasm(engine);
  return (svg) => {
    const font = { fontBuffers, defaultFontFamily: "Inter", sansSerifFamily: "Inter" };
    const picture = new Resvg(byDay(svg), { font, fitTo: { mode: "zoom", value: scale } });
    const rendered = picture.render();
    try {
      return rendered.asPng();
    } finally {
      rendered.free();
      picture.free();
    }
  };
}

const daylight = new Map(
  [...colours.slice(0, colours.indexOf("@media")).matchAll(/(--[\w-]+): (#\w+)/g)].map(([, name, colour]) => [
    name!,
    colour!,
  ]),
);

/** The renderer knows no variables; texts, which stand between tags, are left as they are. */
const byDay = (svg: string): string =>
  svg.replaceAll(/<[^<>"]*(?:"[^"]*"[^<>"]*)*>/g, (tag) =>
    tag.replaceAll(/var\((--[\w-]+)\)/g, (own, name: string) => daylight.get(name) ?? own),
  );
