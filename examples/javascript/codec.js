// Codecs and keys: sections 1 and 5 of SPECIFICATION.md.
"use strict";
const { randomUUID } = require("node:crypto");
const { crc32 } = require("node:zlib");

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const MARK = randomUUID(); // begins the text that stands for an integer which a number of JavaScript cannot hold

function bytesOf(text) {
  if (!text.isWellFormed()) throw new TypeError("the text has a lone surrogate");
  return Buffer.from(text);
}

function isOf(type, value) {
  if (typeof value !== type) throw new TypeError(`the message is ${typeof value}; expected ${type}`);
  return value;
}

function fixed(write, read) {
  const check = (data) => {
    if (data.length !== 8) throw new RangeError(`${data.length} bytes; a number has 8`);
    return data;
  };
  return { write: (value) => (write(Buffer.alloc(8), value)), read: (data) => read(check(data)) };
}

function jsonText(value) {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number" && !Number.isFinite(value)) throw new RangeError(`${value} is not JSON`);
  if (Array.isArray(value)) return `[${value.map(jsonText).join(",")}]`;
  if (value === null || typeof value !== "object") {
    if (typeof value === "string") bytesOf(value);
    return JSON.stringify(value) ?? isOf("object", value);
  }
  const names = Object.keys(value).sort((a, b) => Buffer.compare(bytesOf(a), bytesOf(b)));
  return `{${names.map((name) => `${JSON.stringify(name)}:${jsonText(value[name])}`).join(",")}}`;
}

function jsonValue(text) {
  const marked = text.replace(/"(?:[^"\\]|\\.)*"|-?\d{16,}(?![\d.eE])/g, (m) => (m[0] === '"' ? m : `"${MARK}${m}"`));
  if (marked !== text) JSON.parse(text); // what stands for a number must stand where one may
  return JSON.parse(marked, (name, value) => {
    if (![name, value].every((each) => typeof each !== "string" || each.isWellFormed())) throw new SyntaxError("a lone surrogate");
    if (value === Infinity || value === -Infinity) throw new RangeError("a number beyond binary64");
    if (typeof value !== "string" || !value.startsWith(MARK)) return value;
    const digits = value.slice(MARK.length);
    return Number.isSafeInteger(Number(digits)) ? Number(digits) : BigInt(digits);
  });
}

const int64 = (bytes, value) => (bytes.writeBigInt64BE(isOf("bigint", value)), bytes);
const float64 = (bytes, value) => (bytes.writeDoubleBE(isOf("number", value)), bytes);

/** The codecs by name; a program adds those of its messages of protobuf. */
const codecs = new Map([
  ["bytes", { write: (value) => Buffer.from(isOf("object", value)), read: (data) => data }],
  ["string", { write: (value) => bytesOf(isOf("string", value)), read: (data) => UTF8.decode(data) }],
  ["int64", fixed(int64, (data) => data.readBigInt64BE())],
  ["float64", fixed(float64, (data) => data.readDoubleBE())],
  ["json", { write: (value) => Buffer.from(jsonText(value)), read: (data) => jsonValue(UTF8.decode(data)) }],
]);

/** Returns the bytes of a key: text, bytes, or an integer of 0 to 2^64-1 (a number or a BigInt); undefined for others. */
function keyBytes(key) {
  if (typeof key === "string" && key.isWellFormed()) return Buffer.from(key);
  if (key instanceof Uint8Array) return Buffer.from(key);
  const isNumber = typeof key === "bigint" || Number.isSafeInteger(key);
  if (!isNumber || key < 0 || key >= 2n ** 64n) return undefined;
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(key));
  return bytes;
}

function bucketOf(key, count) {
  const spread = (BigInt(crc32(key)) * 0x9e3779b1n) & 0xffffffffn;
  return Number((spread * BigInt(count)) >> 32n);
}

module.exports = { codecs, keyBytes, bucketOf, UTF8 };
