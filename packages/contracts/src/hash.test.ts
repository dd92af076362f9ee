import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PeriodicEvalError } from "./errors.ts";
import { canonicalJson, createHasher, hashBytes, hashJson, hashText } from "./hash.ts";

describe("hashBytes", () => {
  it("returns the values that existing snapshots contain", () => {
    // Frozen: these values may only change together with the prefix.
    expect(hashText("")).toBe("pe128:525fe456a88e13b6bb5eaf95ae826520");
    expect(hashText("periodic-eval")).toBe("pe128:3d1681d4eb270f75a3b9e8e4ca6a429b");
  });

  it("changes with any single changed word, at any position and by any bits", () => {
    const array = fc.int32Array({ minLength: 1, maxLength: 70 });
    fc.assert(
      fc.property(array, fc.nat(), fc.integer({ min: 1, max: 0xffffffff }), (words, at, flip) => {
        const other = words.slice();
        other[at % words.length]! ^= flip;
        expect(hashBytes(other)).not.toBe(hashBytes(words));
      }),
    );
  });

  it("changes with every single bit of a float tensor, including one ulp", () => {
    const floats = Float32Array.from({ length: 40 }, (_, i) => Math.sin(i));
    const bits = new Int32Array(floats.buffer);
    const digests = new Set([hashBytes(floats)]);
    for (let bit = 0; bit < 40 * 32; bit++) {
      bits[bit >> 5]! ^= 1 << (bit & 31);
      digests.add(hashBytes(floats));
      bits[bit >> 5]! ^= 1 << (bit & 31);
    }
    expect(digests.size).toBe(40 * 32 + 1);
  });

  it("changes when two different words are swapped", () => {
    const words = Int32Array.from({ length: 48 }, (_, i) => i);
    const digests = new Set<string>();
    for (let i = 0; i < 48; i++) {
      for (let j = i + 1; j < 48; j++) {
        const swapped = words.slice();
        [swapped[i], swapped[j]] = [words[j]!, words[i]!];
        digests.add(hashBytes(swapped));
      }
    }
    expect(digests.size).toBe((48 * 47) / 2);
  });

  it("distinguishes zeros of different lengths, and -0 from 0", () => {
    const digests = Array.from({ length: 100 }, (_, length) => hashBytes(new Uint8Array(length)));
    expect(new Set(digests).size).toBe(100);
    expect(hashBytes(Float32Array.of(0))).not.toBe(hashBytes(Float32Array.of(-0)));
  });

  it("changes about half of the digest's bits for one bit of input", () => {
    const words = new Int32Array(8);
    const bitsOf = (digest: string) => BigInt(`0x${digest.slice("pe128:".length)}`);
    const zero = bitsOf(hashBytes(words));
    for (let bit = 0; bit < 256; bit++) {
      words[bit >> 5]! ^= 1 << (bit & 31);
      const changed = (bitsOf(hashBytes(words)) ^ zero).toString(2).replaceAll("0", "").length;
      // For a random function the mean is 64 and the standard deviation 5.7: 35 and 93 are five deviations away.
      expect(changed).toBeGreaterThan(35);
      expect(changed).toBeLessThan(93);
      words[bit >> 5]! ^= 1 << (bit & 31);
    }
  });

  it("does not depend on how the bytes are split, aligned or typed", () => {
    const bytes = fc.uint8Array({ maxLength: 200 });
    fc.assert(
      fc.property(bytes, fc.array(fc.nat(200), { maxLength: 6 }), fc.nat(7), (content, cuts, offset) => {
        const shifted = new Uint8Array(content.length + offset);
        shifted.set(content, offset);
        const view = shifted.subarray(offset);
        const hasher = createHasher();
        let from = 0;
        for (const to of [
          ...cuts.filter((cut) => cut < content.length).sort((a, b) => a - b),
          content.length,
        ]) {
          hasher.update(view.subarray(from, to));
          from = to;
        }
        expect(hasher.digest()).toBe(hashBytes(content));
        expect(hasher.digest()).toBe(hasher.digest());
      }),
    );
  });

  it("hashes unaligned bytes that are copied in several pieces", () => {
    const content = Uint8Array.from({ length: 200_003 }, (_, i) => i * 31);
    const shifted = new Uint8Array(200_004);
    shifted.set(content, 1);
    expect(hashBytes(shifted.subarray(1))).toBe(hashBytes(content));
  });
});

describe("canonicalJson", () => {
  it("sorts keys at every depth and keeps the order of arrays", () => {
    expect(canonicalJson({ b: [2, 1], a: { d: null, c: "é\n" } })).toBe(
      '{"a":{"c":"é\\n","d":null},"b":[2,1]}',
    );
    expect(hashJson({ a: 1, b: 2 })).toBe(hashJson({ b: 2, a: 1 }));
    expect(hashJson([1, 2])).not.toBe(hashJson([2, 1]));
  });

  it("parses back to the value that JSON.stringify keeps", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(JSON.parse(canonicalJson(JSON.parse(text)))).toEqual(JSON.parse(text));
      }),
    );
  });

  it("throws for values that JSON would change silently", () => {
    for (const value of [Number.NaN, Infinity, [undefined], { a: 1n }]) {
      expect(() => canonicalJson(value as never)).toThrow(PeriodicEvalError);
    }
  });
});
