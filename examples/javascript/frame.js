// Frames: section 2 of SPECIFICATION.md.
"use strict";
const { crc32 } = require("node:zlib");

const HEADER = 40, MAX_BODY = 67108824;
const KEYS = 1, SEQUENCES = 2, TIMES = 4, HEADERS = 8, ABSENT = 16; // flags

/** An error with a code of errors.json: what a worker answers, or the reason of a dead letter. */
class Failure extends Error {
  constructor(code, message, cause) {
    super(message, { cause });
    this.code = code;
  }
}

/** Yields the frames of some bytes, {port, rows}; `cut(port, bytes)` cuts messages as a source got them. */
function* frames(bytes, cut) {
  for (let at = 0, end = 0; at < bytes.length; at = end) {
    const size = bytes.length - at < HEADER ? Infinity : bytes.readUInt32LE(at + 12);
    end = at + HEADER + size;
    if (size > MAX_BODY || end > bytes.length) throw new Failure("W410", `the frame at byte ${at} is cut`);
    const sum = crc32(bytes.subarray(at + HEADER, end), crc32(bytes.subarray(at, at + 36)));
    const isSound = bytes.toString("latin1", at, at + 4) === "WFR1" && sum === bytes.readUInt32LE(at + 36);
    if (!isSound || bytes[at + 4] > 31) throw new Failure("W410", `the frame at ${at} is damaged`);
    yield readFrame(bytes.subarray(at, end), cut);
  }
}

function readFrame(bytes, cut) {
  const [flags, encoding, port, count] = [bytes[4], bytes[5], bytes.readUInt16LE(6), bytes.readUInt32LE(8)];
  const [first, time] = [Number(bytes.readBigUInt64LE(16)), Number(bytes.readBigInt64LE(24))];
  let at = HEADER;
  const take = (size) => {
    const left = bytes.length - at;
    if (size > left) throw new Failure("W410", `a section of ${size} bytes; ${left} are left`);
    at += size;
    return bytes.subarray(at - size, at);
  };
  const column = (length) => {
    const [width] = take(1);
    if (![1, 2, 4, 8].includes(width)) throw new Failure("W410", `a column of width ${width}`);
    const data = take(width * length);
    const read = (from) => (width === 8 ? Number(data.readBigUInt64LE(from)) : data.readUIntLE(from, width));
    return Array.from({ length }, (_, i) => read(width * i));
  };
  const block = (length) => column(length).map(take);

  const keys = flags & KEYS ? block(take(4).readUInt32LE(0)) : [];
  const indexes = flags & KEYS ? column(count) : [];
  const sequences = flags & SEQUENCES ? column(count) : null;
  const times = flags & TIMES ? column(count) : [];
  if (flags & HEADERS) block(count);
  const absent = flags & ABSENT ? take(Math.ceil(count / 8)) : [];
  const values = encoding === 1 ? cut(port, take(bytes.length - at)) : block(count);
  const isWhole = at === bytes.length && values.length === count;
  const hasKeys = indexes.every((index) => index < keys.length);
  if (!isWhole || !hasKeys) throw new Failure("W410", "the sections of a frame do not fit together");
  const row = (value, i) => ({
    value, key: keys[indexes[i]], sequence: first + (sequences?.[i] ?? i), time: time + (times[i] ?? 0),
    isAbsent: ((absent[i >> 3] >> (i & 7)) & 1) === 1,
  });
  return { port, rows: values.map(row) };
}

function column(numbers) {
  const most = numbers.reduce((a, b) => Math.max(a, b), 0);
  const width = [1, 2, 4].find((each) => most < 2 ** (8 * each)) ?? 8;
  const bytes = Buffer.alloc(1 + width * numbers.length, width);
  numbers.forEach((number, i) => {
    if (width === 8) bytes.writeBigUInt64LE(BigInt(number), 1 + 8 * i);
    else bytes.writeUIntLE(number, 1 + width * i, width);
  });
  return bytes;
}

/** Returns a column of lengths, and the bytes. */
const block = (values) => [column(values.map((value) => value.length)), ...values];

/** Returns a frame of messages {value, sequence, time, key}, with their keys where `hasKeys` says so. */
function frame(port, encoding, messages, hasKeys = false) {
  const least = (name) => messages.reduce((a, b) => Math.min(a, b[name]), Infinity);
  const [first, time] = [least("sequence"), least("time")];
  const parts = [];
  if (hasKeys) {
    const names = messages.map(({ key }) => key.toString("latin1"));
    const numbers = new Map([...new Set(names)].map((name, number) => [name, number]));
    const count = Buffer.alloc(4);
    count.writeUInt32LE(numbers.size);
    parts.push(count, ...block([...numbers.keys()].map((name) => Buffer.from(name, "latin1"))));
    parts.push(column(names.map((name) => numbers.get(name))));
  }
  parts.push(column(messages.map((each) => each.sequence - first)));
  parts.push(column(messages.map((each) => each.time - time)));
  const body = Buffer.concat([...parts, ...block(messages.map((each) => each.value))]);
  const header = Buffer.alloc(HEADER);
  header.write("WFR1");
  header.set([SEQUENCES | TIMES | (hasKeys && KEYS), encoding], 4);
  header.writeUInt16LE(port, 6);
  header.writeUInt32LE(messages.length, 8);
  header.writeUInt32LE(body.length, 12);
  header.writeBigUInt64LE(BigInt(first), 16);
  header.writeBigInt64LE(BigInt(time), 24);
  header.writeUInt32LE(crc32(body, crc32(header.subarray(0, 36))), 36);
  return Buffer.concat([header, body]);
}

module.exports = { Failure, frame, frames };
