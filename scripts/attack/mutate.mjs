// Random changes of a file: of its bytes, or of its structure where it has one.

/** Values in the place of any other. */
const oddValues = [
  null,
  true,
  0,
  -1,
  0.5,
  1e308,
  -1e308,
  2 ** 53,
  "",
  " ",
  "\u0000",
  "\u001b[31m",
  "\ud800",
  "__proto__",
  "constructor",
  "../../etc/passwd",
  "NaN",
  "1",
  [],
  {},
  [null],
  [[]],
  { length: 3 },
  { toString: null },
  "x".repeat(100_000),
];
const oddBytes = [
  "\u0000",
  "\ufeff",
  "\r",
  "\n\n",
  '"',
  "{",
  "[".repeat(2000),
  "]",
  "}",
  ",",
  ": ",
  "&a *a",
  "!!js",
  "1e999",
  "-",
  "{{",
  "{%",
];

export function mutate(content, kind, random) {
  const pick = (list) => list[Math.floor(list.length * random())];
  const isBinary = typeof content !== "string";
  const structural = { json: mutateJson, jsonl: mutateLine, safetensors: mutateHeader, text: mutateLines }[
    kind
  ];
  if (random() < 0.6) return structural(content, random, pick);
  let bytes = isBinary ? Buffer.from(content) : Buffer.from(content, "utf8");
  for (let changes = pick([1, 1, 1, 2, 5, 30]); changes > 0; changes -= 1)
    bytes = mutateBytes(bytes, random, pick);
  return bytes;
}

function mutateBytes(bytes, random, pick) {
  // The structure is at the start of a binary file.
  const reach = random() < 0.5 ? bytes.length : Math.min(bytes.length, 4096);
  const at = Math.floor(reach * random());
  const end = Math.min(bytes.length, at + Math.ceil(2 ** (random() * 12)));
  switch (pick(["flip", "set", "remove", "repeat", "insert", "cut"])) {
    case "flip":
      bytes[at] ^= 1 << Math.floor(8 * random());
      return bytes;
    case "set":
      bytes[at] = pick([0, 255, 127, 128, Math.floor(256 * random())]);
      return bytes;
    case "remove":
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(end)]);
    case "repeat":
      return Buffer.concat([bytes.subarray(0, end), bytes.subarray(at)]);
    case "insert":
      return Buffer.concat([bytes.subarray(0, at), Buffer.from(pick(oddBytes)), bytes.subarray(at)]);
    default:
      return bytes.subarray(0, at);
  }
}

/** Replaces, removes, repeats or adds a value at a random place of a JSON document. */
function mutateJson(text, random, pick) {
  const top = { root: JSON.parse(text) };
  for (let changes = pick([1, 1, 2, 4]); changes > 0; changes -= 1) {
    let [parent, key] = [top, "root"];
    // Descends to a random depth.
    while (parent[key] !== null && typeof parent[key] === "object" && random() < 0.75) {
      const keys = Object.keys(parent[key]);
      if (keys.length === 0) break;
      [parent, key] = [parent[key], pick(keys)];
    }
    const odd = structuredClone(pick(oddValues));
    const value = parent[key];
    switch (pick(["replace", "replace", "remove", "wrap", "add", "deep", "swap"])) {
      case "replace":
        parent[key] = odd;
        break;
      case "remove":
        if (Array.isArray(parent)) parent.splice(Number(key), 1);
        else if (parent !== top) delete parent[key];
        break;
      case "wrap":
        parent[key] = pick([[value], { [key]: value }, JSON.stringify(value).slice(0, 1000)]);
        break;
      case "add":
        if (value !== null && typeof value === "object" && !Array.isArray(value))
          value[pick(["", "extra", "__proto__x", "toString"])] = odd;
        else parent[key] = [value, odd];
        break;
      case "deep":
        parent[key] = Array.from({ length: pick([10, 1000]) }).reduce((inner) => [inner], odd);
        break;
      default: {
        const other = pick(Object.keys(parent));
        [parent[key], parent[other]] = [parent[other], parent[key]];
      }
    }
  }
  return JSON.stringify(top.root) ?? "";
}

function mutateLine(text, random, pick) {
  const lines = text.split("\n").filter(Boolean);
  const at = Math.floor(lines.length * random());
  lines[at] = pick([
    () => mutateJson(lines[at], random, pick),
    () => `${lines[at]}\n${lines[at]}`,
    // A repeated key.
    () => lines[at].replace("{", `{${lines[at].slice(1, lines[at].indexOf(",") + 1)}`),
    () => "",
  ])();
  return lines.join("\n");
}

function mutateLines(text, random, pick) {
  const lines = text.split("\n");
  const at = Math.floor(lines.length * random());
  const value = JSON.stringify(pick(oddValues));
  lines[at] = pick([
    () => "",
    () => `${lines[at]}\n${lines[at]}`,
    () => `  ${lines[at]}`,
    () => lines[at].replace(/: .*/, `: ${value}`),
    () => lines[at].replace(/: [^,}]*/, `: ${value}`),
    () => lines[at].replaceAll(/\d+/g, () => String(pick([0, -1, 1e308, 2 ** 53, 0.1]))),
    () => lines[Math.floor(lines.length * random())],
  ])();
  return lines.join("\n");
}

/** Changes the JSON header of a safetensors file, with its length or without. */
function mutateHeader(bytes, random, pick) {
  const length = Number(bytes.readBigUInt64LE(0));
  const header = Buffer.from(mutateJson(bytes.toString("utf8", 8, 8 + length), random, pick));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(
    BigInt(random() < 0.8 ? header.length : pick([0, 1, length, 2 ** 31, Number.MAX_SAFE_INTEGER])),
  );
  return Buffer.concat([size, header, bytes.subarray(8 + length)]);
}
