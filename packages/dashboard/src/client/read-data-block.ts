/** Returns the JSON of `<script type="application/json" id="…">`; null if the page has no such block. */
export function readDataBlock<T>(id: string): T | null {
  const text = document.getElementById(id)?.textContent;
  return text ? (JSON.parse(text) as T) : null;
}
