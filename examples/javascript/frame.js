// Frames: section 2 of SPECIFICATION.md.
"use strict";
const { crc32 } = require("node:zlib");

const HEADER = 40, MAX_BODY = 67108824;
const KEYS = 1, SEQUENCES = 2, TIMES = 4, HEADERS = 8, ABSENT = 16;

/** What a worker answers instead of going on. */
class Failure extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

class Body {
  constructor(data) {
    this.data = data;
    this.at = 0;
  }
  take(size) {
    if (!(size <= this.data.length - this.at)) throw new Failure("W414", `a section of ${size} bytes; ${this.data.length - this.at} are left in the body`);
    return this.data.subarray(this.at, (this.at += size));
  }
  column(count) {
    const width = this.take(1)[0];
    if (![1, 2, 4, 8].includes(width)) throw new Failure("W414", `a column of width ${width}`);
    const bytes = this.take(width * count);
    return Array.from({ length: count }, (_, i) => (width === 8 ? Number(bytes.readBigUInt64LE(8 * i)) : bytes.readUIntLE(width * i, width)));
  }
  cut(lengths) {
    return lengths.map((length) => this.take(length));
  }
}

/** Yields the frames of some bytes; `values` of encoding 1 is left to whoever knows the framing, as `data`. */
function* frames(bytes) {
  for (let at = 0; at < bytes.length; ) {
    const damaged = (reason) => new Failure("W414", `a damaged frame at byte ${at}; ${reason}`);
    if (bytes.length - at < HEADER || bytes.toString("latin1", at, at + 4) !== "WFR1") throw damaged("no header");
    const [flags, encoding, size] = [bytes[at + 4], bytes[at + 5], bytes.readUInt32LE(at + 12)];
    const end = at + HEADER + size;
    if (flags > 31 || size > MAX_BODY || end > bytes.length) throw damaged(`flags ${flags}, body of ${size} bytes`);
    const sum = crc32(bytes.subarray(at + HEADER, end), crc32(bytes.subarray(at, at + 36)));
    if (sum !== bytes.readUInt32LE(at + 36)) throw damaged("its checksum is wrong");
    yield read(bytes.subarray(at, end), flags, encoding);
    at = end;
  }
}

function read(bytes, flags, encoding) {
  const body = new Body(bytes.subarray(HEADER)), count = bytes.readUInt32LE(8);
  const [first, time] = [Number(bytes.readBigUInt64LE(16)), Number(bytes.readBigInt64LE(24))];
  const frame = { encoding, count, port: bytes.readUInt16LE(6), first, time, keys: null };
  if (flags & KEYS) {
    const keys = body.cut(body.column(body.take(4).readUInt32LE(0)));
    frame.keys = body.column(count).map((index) => keys[index] ?? body.take(Infinity));
  }
  const moved = (flag, from) => (flags & flag ? body.column(count).map((each) => from + each) : null);
  frame.sequences = moved(SEQUENCES, first);
  frame.times = moved(TIMES, time);
  frame.headers = flags & HEADERS ? body.cut(body.column(count)) : [];
  const bits = flags & ABSENT ? body.take(Math.ceil(count / 8)) : null;
  frame.absent = (i) => bits !== null && ((bits[i >> 3] >> (i & 7)) & 1) === 1;
  if (encoding === 1) frame.data = body.take(body.data.length - body.at);
  else frame.values = body.cut(body.column(count));
  if (body.at !== body.data.length || (count === 0 && frame.data?.length)) throw new Failure("W414", "bytes after the last value of a frame");
  return frame;
}

function column(numbers) {
  const most = numbers.reduce((a, b) => Math.max(a, b), 0);
  const width = [1, 2, 4].find((each) => most < 2 ** (8 * each)) ?? 8;
  const bytes = Buffer.alloc(1 + width * numbers.length, width);
  numbers.forEach((n, i) => (width === 8 ? bytes.writeBigUInt64LE(BigInt(n), 1 + 8 * i) : bytes.writeUIntLE(n, 1 + width * i, width)));
  return bytes;
}

/** Writes a frame of messages {value, sequence, key?, time?}; a value of null is absent. */
function frame(port, encoding, messages, { keys = false, times = false, sequences = true, headers = [] } = {}) {
  const least = (name) => messages.reduce((a, b) => Math.min(a, b[name]), Infinity);
  const [first, time] = [sequences ? least("sequence") : 0, times ? least("time") : messages[0]?.time ?? 0];
  const parts = [];
  if (keys) {
    const found = new Map();
    const indexes = messages.map(({ key }) => found.get(key.toString("latin1")) ?? (found.set(key.toString("latin1"), found.size), found.size - 1));
    const distinct = [...found.keys()].map((key) => Buffer.from(key, "latin1"));
    const count = Buffer.alloc(4);
    count.writeUInt32LE(distinct.length);
    parts.push(count, column(distinct.map((key) => key.length)), ...distinct, column(indexes));
  }
  if (sequences) parts.push(column(messages.map((each) => each.sequence - first)));
  if (times) parts.push(column(messages.map((each) => each.time - time)));
  if (headers.length) parts.push(column(headers.map((each) => each.length)), ...headers);
  const absent = messages.some((each) => each.value === null);
  if (absent) {
    const bits = Buffer.alloc(Math.ceil(messages.length / 8));
    messages.forEach((each, i) => (bits[i >> 3] |= (each.value === null) << (i & 7)));
    parts.push(bits);
  }
  const values = messages.map((each) => each.value ?? Buffer.alloc(0));
  const body = Buffer.concat([...parts, column(values.map((value) => value.length)), ...values]);
  const header = Buffer.alloc(HEADER);
  header.write("WFR1", "latin1");
  header[4] = (keys && KEYS) | (sequences && SEQUENCES) | (times && TIMES) | (headers.length && HEADERS) | (absent && ABSENT);
  header[5] = encoding;
  header.writeUInt16LE(port, 6);
  header.writeUInt32LE(messages.length, 8);
  header.writeUInt32LE(body.length, 12);
  header.writeBigUInt64LE(BigInt(first), 16);
  header.writeBigInt64LE(BigInt(time), 24);
  header.writeUInt32LE(crc32(body, crc32(header.subarray(0, 36))), 36);
  return Buffer.concat([header, body]);
}

module.exports = { Failure, frames, frame };
