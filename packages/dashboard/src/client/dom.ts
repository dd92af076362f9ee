import type { Html } from "../html/html.ts";

/** Creates an element with attributes and children. Strings become text, never markup. */
export function create<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Returns the one element of a template, for the page. */
export function elementOf({ markup }: Html): HTMLElement {
  const template = create("template");
  template.innerHTML = markup;
  return template.content.firstElementChild as HTMLElement;
}

/** Creates an SVG element with attributes. */
export function createSvg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string | number>> = {},
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}

/** Returns the JSON of `<script type="application/json" id="…">`; null if the page has no such block. */
export function readDataBlock<T>(id: string): T | null {
  const text = document.getElementById(id)?.textContent;
  return text ? (JSON.parse(text) as T) : null;
}

/** Saves a file through the browser. The characters of `name` that a file system may not allow become `_`. */
export function save(blob: Blob, name: string): void {
  const link = create("a", { href: URL.createObjectURL(blob), download: name.replaceAll(/[^\w.-]+/g, "_") });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
