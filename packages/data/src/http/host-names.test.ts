import { expect, it } from "vitest";
import { bareHost, isLoopback, isOriginOf, isOwnHost } from "./host-names.ts";

it.each([
  // Loopback hosts and the host that the server listens on are its own.
  ["localhost:8010", "127.0.0.1", true],
  ["[::1]:8010", "127.0.0.1", true],
  ["127.0.0.1", "[::1]", true],
  ["[fe80::1]:80", "[fe80::1]", true],
  ["box.lan:8010", "box.lan", true],
  ["BOX.lan", "box.lan", true],
  ["box.lan.attacker.example", "box.lan", false],
  ["127.0.0.2:8010", "127.0.0.1", true],
  ["[0:0:0:0:0:0:0:1]", "127.0.0.1", true],
  ["10.0.0.7:8010", "127.0.0.1", false],
  // Forms that resolvers accept and no browser sends.
  ["127.1", "127.0.0.1", false],
  ["0x7f.1", "127.0.0.1", false],
  ["2130706433", "127.0.0.1", false],
  ["127.0.0.256", "0.0.0.0", false],
  ["127.0.0.1.attacker.example", "127.0.0.1", false],
  // On all interfaces: IP addresses and the machine's name, but no other name.
  ["10.0.0.7:8010", "0.0.0.0", true],
  ["[fe80::1]", "::", true],
  ["Workshop:8010", "0.0.0.0", true],
  ["workshop", "10.0.0.7", false],
  ["attacker.example", "0.0.0.0", false],
  ["0x7f.1", "0.0.0.0", false],
  ["10.0.0.7.attacker.example", "0.0.0.0", false],
  ["", "127.0.0.1", false],
  ["localhost:", "127.0.0.1", false],
  ["localhost:80:80", "127.0.0.1", false],
  ["user@localhost", "127.0.0.1", false],
  ["localhost/x", "127.0.0.1", false],
])("isOwnHost(%j, %j) is %j", (called, listening, isOwn) => {
  expect(isOwnHost(called, listening, "workshop")).toBe(isOwn);
});

it.each([
  ["localhost", true],
  ["LOCALHOST", true],
  ["127.0.0.1", true],
  ["127.255.0.3", true],
  ["::1", true],
  ["[::1]", true],
  ["0::1", true],
  ["127.0.0.999", false],
  ["127.00.0.1", false],
  ["127.1", false],
  ["0.0.0.0", false],
  ["::", false],
  ["fe80::1", false],
  ["localhost.attacker.example", false],
  ["127.0.0.1.attacker.example", false],
  ["", false],
])("isLoopback(%j) is %j", (host, isAlone) => {
  expect(isLoopback(host)).toBe(isAlone);
});

it.each([
  ["http://localhost:8010", "localhost:8010", true],
  ["http://localhost:8010", "LOCALHOST:8010", true],
  ["http://localhost:9000", "localhost:8010", false],
  ["http://attacker.example", "localhost:8010", false],
  ["null", "localhost:8010", false],
  ["http://localhost", undefined, false],
])("isOriginOf(%j, %j) is %j", (origin, called, isSame) => {
  expect(isOriginOf(origin, called)).toBe(isSame);
});

it("removes brackets and converts to lower case", () => {
  expect(["[::1]", "[FE80::1]", "box.LAN"].map(bareHost)).toEqual(["::1", "fe80::1", "box.lan"]);
});
