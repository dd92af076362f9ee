import fc from "fast-check";
import { createHash } from "node:crypto";
import * as posix from "node:path/posix";
import { describe, expect, it } from "vitest";
import * as browser from "./browser.ts";
import * as node from "./node.ts";

describe("the platform in browsers", () => {
  it("has the names of the platform in Node", () => {
    expect(Object.keys(browser).sort()).toEqual(Object.keys(node).sort());
  });

  it("hashes as node:crypto, however the bytes are split", () => {
    const pieces = fc.array(fc.uint8Array({ maxLength: 150 }), { maxLength: 4 });
    fc.assert(
      fc.property(pieces, fc.string(), (bytes, text) => {
        const [ours, theirs] = [browser.createHash("sha256"), createHash("sha256")];
        for (const piece of bytes) {
          ours.update(piece);
          theirs.update(piece);
        }
        expect(ours.update(text).digest("hex")).toBe(theirs.update(text).digest("hex"));
      }),
    );
    // FIPS 180-4, the example of one block.
    expect(browser.createHash("sha256").update("abc").digest("base64")).toBe(
      "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=",
    );
  });

  it("names the hash that it has, when asked for another", () => {
    expect(() => browser.createHash("sha1")).toThrow('got "sha1", expected "sha256". Use sha256');
  });

  it("computes paths as node:path", () => {
    const part = fc.constantFrom("a", "b.json", "..", ".", "", "/", "/c/", "d/e", "f//g", "../h");
    const isRelative = fc.array(part, { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(isRelative, isRelative, (one, two) => {
        expect(browser.join(...one)).toBe(posix.join(...one));
        expect(browser.resolve("/", ...one)).toBe(posix.resolve("/", ...one));
        const [path, other] = [one, two].map((parts) => posix.normalize(parts.join("/"))) as [string, string];
        expect(browser.dirname(path)).toBe(posix.dirname(path));
        expect(browser.basename(path)).toBe(posix.basename(path));
        expect(browser.basename(path, ".json")).toBe(posix.basename(path, ".json"));
        expect(browser.relative(`/${path}`, `/${other}`)).toBe(posix.relative(`/${path}`, `/${other}`));
      }),
    );
  });

  it("compares JSON values as node:util", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        expect(browser.isDeepStrictEqual(a, b)).toBe(node.isDeepStrictEqual(a, b));
        expect(browser.isDeepStrictEqual(a, structuredClone(a))).toBe(true);
      }),
    );
  });

  it("recognizes UTF-8 as node:buffer", () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 4 }), fc.string({ unit: "binary" })), (content) => {
        const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
        expect(browser.isUtf8(bytes)).toBe(node.isUtf8(bytes));
      }),
    );
    expect(browser.byteLength("é\u2028日")).toBe(node.byteLength("é\u2028日"));
  });
});
