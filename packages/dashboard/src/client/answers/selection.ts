/** Returns the parameters of the page's address for one part of the page: `#answers?step=80`. Null if it is about another part. */
export function readHash(part: string): URLSearchParams | null {
  const prefix = `#${part}?`;
  const { hash } = window.location;
  return hash.startsWith(prefix) ? new URLSearchParams(hash.slice(prefix.length)) : null;
}

/** Returns a link to a selection. Leaves out empty parameters. */
export function hashOf(part: string, parameters: Readonly<Record<string, string | number>>): string {
  const kept = Object.entries(parameters).filter(([, value]) => value !== "");
  return `#${part}?${new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString()}`;
}

/** Puts a selection into the page's address, without a new entry in the browser's history. */
export function writeHash(hash: string): void {
  window.history.replaceState(window.history.state, "", hash);
}
