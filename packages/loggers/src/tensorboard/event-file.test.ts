import { expect, it } from "vitest";
import { crc32c, maskedCrc32c } from "./event-file.ts";

// RFC 3720, B.4: 32 bytes each.
it.each([
  ["zeros", Array.from({ length: 32 }, () => 0), 0x8a9136aa],
  ["ones", Array.from({ length: 32 }, () => 0xff), 0x62a8ab43],
  ["ascending", Array.from({ length: 32 }, (_, i) => i), 0x46dd794e],
  ["descending", Array.from({ length: 32 }, (_, i) => 31 - i), 0x113fdb5c],
])("returns the checksum of RFC 3720 for %s", (_, bytes, expected) => {
  expect(crc32c(new Uint8Array(bytes))).toBe(expected);
});

it("masks by rotating 15 bits and adding a constant", () => {
  // crc32c("123456789") = e3069283; rotated right by 15: 2507c60d; plus a282ead8: c78ab0e5.
  const digits = new TextEncoder().encode("123456789");
  expect(crc32c(digits)).toBe(0xe3069283);
  expect(maskedCrc32c(digits)).toBe(0xc78ab0e5);
});
