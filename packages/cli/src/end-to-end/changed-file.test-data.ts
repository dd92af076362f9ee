// Random changes of a file: of its bytes, of a line, or of a JSON value.
import fc from "fast-check";

export type Draw = fc.GeneratorValue;

const texts = "|\u0000|\u001b[31m|\ud800|__proto__|../../etc/passwd|NaN|1".split("|");
const values: readonly unknown[] = [...texts, null, true, 0, -1, 0.5, 1e308, 2 ** 53, [], {}, [null]];
const bytes = '\u0000|\ufeff|\r|\n\n|"|{|]|,|: |&a *a|!!js|1e999|{{|{%'.split("|");
const pick = <Value>(draw: Draw, list: readonly Value[]): Value =>
  list[draw(fc.nat, { max: list.length - 1 })]!;
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

function changedBytes(content: Buffer, draw: Draw): Buffer {
  // The structure of a binary file is at its start.
  const at = draw(fc.nat, { max: Math.min(content.length, pick(draw, [4096, Infinity])) - 1 });
  const end = Math.min(content.length, at + draw(fc.integer, { min: 1, max: 4096 }));
  const [before, after] = [content.subarray(0, at), content.subarray(at)];
  return pick(draw, [
    () =>
      Buffer.concat([
        before,
        Buffer.from([content[at]! ^ (1 << draw(fc.nat, { max: 7 }))]),
        after.subarray(1),
      ]),
    () => Buffer.concat([before, content.subarray(end)]),
    () => Buffer.concat([content.subarray(0, end), after]),
    () => Buffer.concat([before, Buffer.from(pick(draw, bytes)), after]),
    () => before,
  ])();
}

/** Replaces, removes, wraps or adds a value at a random depth. */
function changedJson(text: string, draw: Draw): string {
  const top: Record<string, unknown> = { root: JSON.parse(text) };
  let [parent, name] = [top, "root"];
  for (let value = top["root"]; isObject(value) && Object.keys(value).length > 0; value = parent[name]) {
    if (draw(fc.nat, { max: 3 }) === 0) break;
    [parent, name] = [value, pick(draw, Object.keys(value))];
  }
  const value = parent[name];
  pick(draw, [
    () => (parent[name] = pick(draw, values)),
    () => (Array.isArray(parent) ? parent.splice(Number(name), 1) : delete parent[name]),
    () => (parent[name] = pick(draw, [[value], { [name]: value }, JSON.stringify(value)])),
    () => (isObject(value) ? (value["extra"] = pick(draw, values)) : (parent[name] = [value, value])),
  ])();
  return JSON.stringify(top["root"] ?? null);
}

function changedLine(text: string, draw: Draw): string {
  const lines = text.trimEnd().split("\n");
  const at = draw(fc.nat, { max: lines.length - 1 });
  const line = lines[at]!;
  lines[at] = pick(draw, [
    () => "",
    () => `${line}\n${line}`,
    () => line.replace(/: [^,}]*/, `: ${JSON.stringify(pick(draw, values))}`),
    () => line.replaceAll(/\d+/g, () => String(pick(draw, [0, -1, 1e308, 2 ** 53, 0.1]))),
    () => (line.startsWith(`{"`) ? changedJson(line, draw) : line.slice(0, line.length / 2)),
  ])();
  return lines.join("\n");
}

/** Returns a changed copy of a file's content; `name` tells its format. */
export function changedFile(name: string, content: Buffer, draw: Draw): Buffer {
  if (name.endsWith(".safetensors") || draw(fc.boolean)) return changedBytes(content, draw);
  return Buffer.from((name.endsWith(".json") ? changedJson : changedLine)(content.toString(), draw));
}
