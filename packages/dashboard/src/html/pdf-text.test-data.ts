import { inflateSync } from "node:zlib";

/**
 * Returns the text of each page of a PDF that Chromium printed, without spaces. Reads what Chromium's PDF library writes (plain
 * objects, deflated streams, fonts with `/ToUnicode`), and no other PDF.
 */
export function pdfPages(pdf: Buffer): readonly string[] {
  const objects = new Map(
    [...pdf.toString("latin1").matchAll(/(\d+) 0 obj\n([^]*?)\nendobj/g)].map(([, number, body]) => [
      number!,
      body!,
    ]),
  );
  const fonts = new Map<string, ReadonlyMap<string, string>>();
  const charactersOf = (font: string): ReadonlyMap<string, string> => {
    const known = fonts.get(font) ?? charactersIn(streamOf(objects, objects.get(font)!, "ToUnicode"));
    fonts.set(font, known);
    return known;
  };
  return [...objects.values()]
    .filter((body) => /\/Type \/Page\b/.test(body))
    .map((page) => {
      const fontNumbers = new Map(
        [...page.matchAll(/\/(F\d+) (\d+) 0 R/g)].map(([, name, number]) => [name!, number!]),
      );
      let characters: ReadonlyMap<string, string> = new Map();
      let text = "";
      for (const [, font, glyphs] of streamOf(objects, page, "Contents").matchAll(
        /\/(F\d+) [\d.]+ Tf|<([\dA-F]+)>/g,
      )) {
        if (font !== undefined) characters = charactersOf(fontNumbers.get(font)!);
        for (const glyph of glyphs?.match(/.{4}/g) ?? []) text += characters.get(glyph) ?? "";
      }
      return withoutSpaces(text);
    });
}

export const withoutSpaces = (text: string): string => text.replaceAll(/\s+/g, "");

/** Returns the content of the stream that an object names under a key. */
function streamOf(objects: ReadonlyMap<string, string>, object: string, key: string): string {
  const number = new RegExp(`/${key} (\\d+) 0 R`).exec(object)![1]!;
  const body = objects.get(number)!;
  const content = body.slice(body.indexOf("stream\n") + "stream\n".length, body.lastIndexOf("\nendstream"));
  return inflateSync(Buffer.from(content, "latin1")).toString("latin1");
}

/** Returns the characters of glyphs, by their four hexadecimal digits. */
function charactersIn(map: string): ReadonlyMap<string, string> {
  const characters = new Map<string, string>();
  const textOf = (hex: string): string => Buffer.from(hex, "hex").swap16().toString("utf16le");
  const part = (name: string) =>
    [...map.matchAll(new RegExp(`begin${name}\n([^]*?)end${name}`, "g"))].map(([, lines]) => lines!).join("");
  for (const [, glyph, hex] of part("bfchar").matchAll(/<(\w+)> <(\w+)>/g))
    characters.set(glyph!, textOf(hex!));
  for (const [, first, last, hex] of part("bfrange").matchAll(/<(\w+)> <(\w+)> <(\w+)>/g)) {
    const [from, to, code] = [first!, last!, hex!].map((digits) => Number.parseInt(digits, 16)) as [
      number,
      number,
      number,
    ];
    for (let glyph = from; glyph <= to; glyph++)
      characters.set(
        glyph.toString(16).toUpperCase().padStart(4, "0"),
        String.fromCharCode(code + glyph - from),
      );
  }
  return characters;
}
