// The conformance application; README.md beside this file says what each step does.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { serve } = require("../../examples/javascript/worker.js");

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const uint = (header) => header.readUIntBE(0, header.length);
const decode = (payload) => {
  const text = UTF8.decode(payload);
  return text === "skip" ? null : text;
};
const source = (header) => ({ kind: "source", header, length: uint, decode });
const refuse = (what) => {
  throw new Error(`${what} was asked to raise`);
};
const FLOOD = "flood\n".repeat(1 << 17);

function act(data) {
  if (data === "drop") return null;
  if (data === "raise") refuse("act");
  if (data === "opaque") return { isOpaque: true, lock: 1n }; // there is no JSON of a BigInt
  if (data === "exit") process.exit(3);
  if (data === "sleep") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500);
  if (data === "flood") [process.stdout, process.stderr].forEach((stream) => stream.write(FLOOD));
  return data;
}

function split(data) {
  if (data.isOpaque) return [data];
  if (data === "nothing") return null;
  if (data === "raise multi") refuse("split");
  if (data === "wrong multi") return 7;
  return data.split(",").map((item) => (item === "none" ? null : item));
}

function wordKey(data) {
  if (data.isOpaque) return "opaque";
  if (!data) throw new Error("no key in an empty text");
  const key = data.split(":")[0];
  return key === "wrong key" ? undefined : key;
}

/** A number, and what a message has told of the state: "unwritable", "unreadable", "deadly" or nothing. */
const totals = {
  name: "totals",
  build: () => ({ count: 0, kept: "", spoilt: "" }),
  write(state) {
    if (state.spoilt === "unwritable") throw new Error("the state was told not to be written");
    if (state.spoilt === "deadly") process.exit(3);
    return Buffer.from(JSON.stringify(state));
  },
  read(data) {
    const state = JSON.parse(data);
    if (state.spoilt === "unreadable") throw new Error("the state was told not to be read");
    return state;
  },
};

function count(data, state) {
  const [key, op = "add", ...rest] = data.split(":");
  state.count += 1;
  if (op === "boom") refuse("count");
  if (op === "wrong pair") return 7;
  if (op === "silent") return [null, true];
  if (op === "keep") state.kept += rest.join(":");
  if (["unwritable", "unreadable", "deadly"].includes(op)) state.spoilt = op;
  if (op === "spoil") state.spoilt = "unwritable";
  return [`${op}:${key}=${state.count};${Buffer.byteLength(data)}`, !["forget", "spoil"].includes(op)];
}

function encodeWord(data) {
  const op = data.split(":")[0];
  if (op === "unencodable") refuse("encode");
  if (op === "wrong encoding") return 1.5;
  if (op === "unsent") return null;
  return op === "bytes" ? Buffer.from(data) : data;
}

function spread(data, state) {
  state.count += 1;
  if (data.endsWith(":boom")) refuse("spread");
  if (data.endsWith(":nothing")) return [null, true];
  return [[`${data}/${state.count}/1`, null, `${data}/${state.count}/2`], true];
}

const number = (name) => ({ name, build: () => ({ count: 0 }) });
const bigKey = (value) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(value);
  return bytes;
};
const conformance = {
  "0/sources/0": source(4),
  "0/steps/0": { kind: "computation", name: "act", run: act },
  "0/steps/1": { kind: "computation_multi", name: "split", run: split },
  "0/steps/2": { kind: "state_computation", name: "count", run: count, key: wordKey, state: totals },
  "0/sinks/0": { kind: "sink", encode: encodeWord },
  "1/sources/0": source(2),
  "1/steps/0": {
    kind: "state_computation_multi", name: "spread", run: spread, key: (data) => BigInt(data.split(":")[0]), state: number("numbers"),
    keys: [0n, 1n, 7n, 2n ** 64n - 1n].map(bigKey),
  },
  "1/steps/1": { kind: "computation", name: "shout", run: (data) => data.toUpperCase() },
  "1/steps/2": {
    kind: "state_computation", name: "tally", key: (data) => Buffer.from(data.split(":")[0]), state: number("tallies"),
    run: (data, state) => [`${(state.count += 1)} ${data}`, true],
  },
  "1/sinks/0": { kind: "sink", encode: (data) => data },
  "2/sources/0": source(3),
  "2/sinks/0": { kind: "sink", encode: (data) => data },
};

/** The application Streams; the worker has neither windows nor generators, so only the paths after theirs matter. */
function streams(windows) {
  const step = (at) => `0/steps/${2 * windows + at}`;
  const counter = (name) => ({ kind: "state_computation", name, state: number(name), run: (data, state) => [`${data}=${(state.count += 1)}`, true] });
  const name = (data) => (data ? data.split(":")[0] : refuse("name"));
  return {
    [`0/sources/${windows}`]: { kind: "source", header: 4, length: uint, decode: (payload) => payload.toString() },
    [step(0)]: { kind: "key_by", name: "name", key: name },
    [step(1)]: { kind: "computation", name: "left", run: (data) => `<${data}` },
    [step(2)]: { kind: "computation", name: "right", run: (data) => `${data}>` },
    [step(3)]: counter("number"),
    [step(4)]: { kind: "collect", name: "collect" },
    [step(5)]: counter("total"),
    "0/sinks/0": { kind: "sink", encode: (data) => data },
  };
}

serve((args) => {
  if (args.includes("--fail")) throw new Error("the setup was asked to fail");
  const document = fs.readFileSync(path.join(__dirname, "topology.json"), "utf8");
  const at = args.indexOf("--windows");
  return { document, components: at < 0 ? conformance : streams(JSON.parse(args[at + 1]).length) };
});
