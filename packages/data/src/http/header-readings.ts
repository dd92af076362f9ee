/** Returns the two readings of a header: Node decodes headers as Latin-1, as `fetch` sends them, but curl sends UTF-8. */
export const headerReadings = (header: string): readonly [latin1: string, utf8: string] => [
  header,
  new TextDecoder().decode(Uint8Array.from(header, (letter) => letter.charCodeAt(0))),
];
