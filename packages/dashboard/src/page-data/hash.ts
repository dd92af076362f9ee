/** Returns a link to a selection of one part of the page: `#answers?step=80`. Leaves out empty parameters. */
export function hashOf(part: string, parameters: Readonly<Record<string, string | number>>): string {
  const kept = Object.entries(parameters).filter(([, value]) => value !== "");
  return `#${part}?${new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString()}`;
}
