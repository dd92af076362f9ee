/** Returns the parameters of the page's address for one part of the page: `#answers?step=80`. Null if it is about another part. */
export function readHash(part: string): URLSearchParams | null {
  const prefix = `#${part}?`;
  const { hash } = window.location;
  return hash.startsWith(prefix) ? new URLSearchParams(hash.slice(prefix.length)) : null;
}

/** Puts a selection into the page's address, without a new entry in the browser's history. */
export function writeHash(hash: string): void {
  window.history.replaceState(window.history.state, "", hash);
}

/** Follows a link to a selection, also if the page's address is that link already. */
export function openHash(hash: string): void {
  if (window.location.hash === hash) window.dispatchEvent(new HashChangeEvent("hashchange"));
  else window.location.hash = hash;
}

/** Calls `show` when a link leads to a selection of a part, and moves the view and the keyboard there, also if the page opens with it. */
export function onHash(part: string, place: HTMLElement, show: (parameters: URLSearchParams) => void): void {
  window.addEventListener("hashchange", () => {
    const parameters = readHash(part);
    // The page may have been updated without this part.
    if (parameters === null || !place.isConnected) return;
    show(parameters);
    focusOn(place);
  });
  if (readHash(part) !== null) focusOn(place);
}

export function focusOn(place: HTMLElement): void {
  place.tabIndex = -1;
  place.focus({ preventScroll: true });
  (place.closest("section") ?? place).scrollIntoView();
}
