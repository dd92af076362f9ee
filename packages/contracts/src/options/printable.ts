/**
 * Characters that a terminal obeys or that reorder text: control characters except tab and line ends, C1 controls, Unicode's line
 * separators, and the controls of bidirectional text.
 */
// oxlint-disable-next-line no-control-regex -- control characters are what it finds
const unsafe = /\r(?!\n)|[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** A number that marks our own colour codes, as a parameter that terminals ignore. No file can know it. */
const mark = crypto.getRandomValues(new Uint32Array(1))[0]!;
// oxlint-disable-next-line no-control-regex -- escape sequences are what it finds
const colourCode = /\x1b\[(\d+)m/g;
const markedCode = new RegExp(`\x1b\\[(\\d+);${mark}m`, "g");
const marked = new WeakSet<object>();

const escaped = (text: string): string =>
  text.replace(unsafe, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x20
      ? `\\x${code.toString(16).padStart(2, "0")}`
      : `\\u${code.toString(16).padStart(4, "0")}`;
  });

/**
 * Returns a text as a terminal may print it. Escape sequences and other unsafe characters, which names and texts of files can
 * hold, become visible (`\x1b[2J`); colours of `ownColours` stay. Every output to a terminal passes through here.
 */
export function printable(text: string): string {
  let shown = "";
  let from = 0;
  for (const { index, 0: code, 1: colour } of text.matchAll(markedCode)) {
    shown += `${escaped(text.slice(from, index))}\x1b[${colour}m`;
    from = index + code.length;
  }
  return shown + escaped(text.slice(from));
}

/** Whether `printable` keeps these colours. */
export const isOwnColours = (colours: object): boolean => marked.has(colours);

/** Returns colours whose codes `printable` keeps. Their output is for `printable` only. */
export function ownColours<C extends object>(colours: C): C {
  if (isOwnColours(colours)) return colours;
  const entries = Object.entries(colours).map(([name, paint]: readonly [string, unknown]) => [
    name,
    typeof paint === "function"
      ? (text: unknown) =>
          (paint as (text: string) => string)(printable(String(text))).replace(colourCode, `\x1b[$1;${mark}m`)
      : paint,
  ]);
  const wrapped = Object.fromEntries(entries) as C;
  marked.add(wrapped);
  return wrapped;
}
