import { inflateSync } from "node:zlib";

/** Counts the pixels of each colour (`#rrggbb`) in a non-interlaced PNG file with alpha and 8 bits per channel. */
export function pixelsOf(png: Buffer): ReadonlyMap<string, number> {
  const parts: Buffer[] = [];
  // A chunk: length, name, content, checksum.
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at))
    if (png.toString("latin1", at + 4, at + 8) === "IDAT")
      parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  const bytes = inflateSync(Buffer.concat(parts));
  const row = 4 * png.readUInt32BE(16);
  const counts = new Map<string, number>();
  let above = new Uint8Array(row);
  for (let at = 0; at < bytes.length; at += row + 1) {
    const line = new Uint8Array(row);
    for (let i = 0; i < row; i += 1) {
      const [left, up, corner] = [line[i - 4] ?? 0, above[i]!, above[i - 4] ?? 0];
      line[i] = bytes[at + 1 + i]! + predicted[bytes[at]!]!(left, up, corner);
    }
    for (let i = 0; i < row; i += 4) {
      const colour = `#${Buffer.from(line.subarray(i, i + 3)).toString("hex")}`;
      counts.set(colour, (counts.get(colour) ?? 0) + 1);
    }
    above = line;
  }
  return counts;
}

/** Predictors by a line's filter type: none, left, up, mean, and Paeth (the neighbour nearest to left + up − corner). */
const predicted: readonly ((left: number, up: number, corner: number) => number)[] = [
  () => 0,
  (left) => left,
  (_, up) => up,
  (left, up) => (left + up) >> 1,
  (left, up, corner) => {
    const distance = (one: number) => Math.abs(left + up - corner - one);
    if (distance(left) <= distance(up) && distance(left) <= distance(corner)) return left;
    return distance(up) <= distance(corner) ? up : corner;
  },
];
