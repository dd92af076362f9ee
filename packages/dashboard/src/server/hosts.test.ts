import { hostname } from "node:os";
import { expect, it } from "vitest";
import { isOwnHost } from "./hosts.ts";

it.each([
  // Loopback is always its own; the name that it listens on too.
  ["localhost:8010", "127.0.0.1", true],
  ["[::1]:8010", "127.0.0.1", true],
  ["127.0.0.1", "[::1]", true],
  ["[fe80::1]:80", "[fe80::1]", true],
  ["box.lan:8010", "box.lan", true],
  ["BOX.lan", "box.lan", true],
  ["box.lan.evil.example", "box.lan", false],
  ["10.0.0.7:8010", "127.0.0.1", false],
  // Everywhere: numbers, and the machine's own name, but no other.
  ["10.0.0.7:8010", "0.0.0.0", true],
  ["[fe80::1]", "::", true],
  [`${hostname()}:8010`, "0.0.0.0", true],
  ["evil.example", "0.0.0.0", false],
  ["0x7f.1", "0.0.0.0", false],
  ["10.0.0.7.evil.example", "0.0.0.0", false],
  ["", "127.0.0.1", false],
  ["localhost:", "127.0.0.1", false],
  ["localhost:80:80", "127.0.0.1", false],
  ["user@localhost", "127.0.0.1", false],
  ["localhost/x", "127.0.0.1", false],
])("called %j, listening on %j: %j", (called, listening, isOwn) => {
  expect(isOwnHost(called, listening)).toBe(isOwn);
});
