import { create } from "./dom.ts";

/** Saves a file through the browser. The characters of `name` that a file system may not allow become `_`. */
export function save(blob: Blob, name: string): void {
  const link = create("a", { href: URL.createObjectURL(blob), download: name.replaceAll(/[^\w.-]+/g, "_") });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
