// Runs the nodes of a stage: section 4 of SPECIFICATION.md.
"use strict";
const { Failure, frames, frame } = require("./frame.js");
const { codecs, keyBytes, bucketOf } = require("./codec.js");

const STATE_KINDS = ["state_computation", "state_computation_multi"];
const HOSTED = {
  SOURCE: ["source", "generator"], COMPUTATION: ["computation"], COMPUTATION_MULTI: ["computation_multi"], KEY_BY: ["key_by"],
  STATE_COMPUTATION: ["state_computation"], STATE_COMPUTATION_MULTI: ["state_computation_multi"], COLLECT: ["collect"],
  KEY: STATE_KINDS, SINK: ["sink"],
};
const LETTERS = 65535, NATIVE = 16, EMPTY = Buffer.alloc(0), FAILED = Symbol("failed"), OUTSIDE = 2 ** 62;
const native = {
  write(value) {
    const text = JSON.stringify(value);
    if (text === undefined) throw new TypeError(`${typeof value} has no JSON`);
    return Buffer.from(text);
  },
  read: (data) => JSON.parse(data.toString()),
};
const line = (error) => String(error?.message ?? error).split("\n")[0];
const shown = (key) => JSON.stringify(key.toString());

class Stage {
  constructor(program, { id, nodes, bucketCount, frameBytes }) {
    Object.assign(this, { program, id, bucketCount, frameBytes: frameBytes || 1 << 24 });
    this.nodes = nodes.map((node) => this.node(node));
    for (const node of this.nodes) node.readers = this.nodes.filter((each) => each.inputs.includes(node.path) && each !== node);
    const exits = ["KEY", "SINK", "SEND"];
    for (const node of this.nodes) if (exits.includes(node.kind)) node.readers = [];
    this.entries = new Map(this.nodes.filter((node) => !node.inputs.length).map((node) => [node.port, node]));
  }

  node(node) {
    const kind = String(node.kind).replace("NODE_KIND_", ""), component = this.program.components.get(node.component || node.path);
    const isBorder = kind === "SEND" || kind === "RECEIVE" || (kind === "KEY" && !component);
    if (!isBorder && !HOSTED[kind]?.includes(component?.kind)) throw new Failure("W413", `stage "${this.id}" names "${node.path}", which this worker does not host`);
    if (node.codec && !codecs.has(node.codec)) throw new Failure("W410", `codec "${node.codec}" of "${node.path}" is not known`);
    return { ...node, kind, component, name: component?.name ?? node.path, form: codecs.get(node.codec) ?? native };
  }

  begin(index, skips, flight) {
    Object.assign(this, { index, flight, letters: [], ordinal: 0, port: LETTERS, time: 0 });
    this.skips = new Map(skips.map((skip) => [Number(skip.ordinal), skip]));
    for (const node of this.nodes) Object.assign(node, { out: [], into: 0, made: 0, dead: 0 });
  }

  letter(node, message, at, code, error, { raw = null, key = null } = {}) {
    let [input, encoding] = [raw ?? EMPTY, raw ? 0 : NATIVE];
    try {
      input = raw ?? native.write(message);
    } catch {
      encoding = 0; // it is a dead letter whatever its input
    }
    const preview = (raw ?? (typeof message === "string" ? JSON.stringify(message.slice(0, 190)) : input)).toString().slice(0, 200);
    const [traceback, text] = [error instanceof Error ? error.stack : "", code === "C503" ? `returned ${error}` : line(error)];
    this.letters.push({
      code, path: node.path, step: node.name, sequence: at.sequence, port: this.port, input, encoding, preview, traceback,
      error: text, timestampMs: this.time, key: key ?? EMPTY, hasKey: key !== null,
    });
    node.dead++;
    return FAILED;
  }

  ask(node, message, at, run, code = "C501") {
    try {
      return run();
    } catch (error) {
      return this.letter(node, message, at, code, error);
    }
  }

  pass(node, message, at) {
    if (message === null || message === undefined) return;
    node.made++;
    for (const reader of node.readers) this.accept(reader, message, at);
  }

  accept(node, message, at) {
    node.into++;
    const { component, kind } = node;
    if (kind === "COLLECT") return this.pass(node, message, { ...at, key: EMPTY });
    if (kind === "KEY" || kind === "SEND") return this.leave(node, message, at);
    const run = { COMPUTATION: "run", COMPUTATION_MULTI: "run", KEY_BY: "key", SINK: "encode" }[kind];
    const result = this.ask(node, message, at, () => component[run](message));
    if (result === FAILED) return undefined;
    if (kind === "COMPUTATION") return this.pass(node, result, at);
    if (kind === "COMPUTATION_MULTI") return this.passAll(node, message, at, result);
    const bytes = kind === "KEY_BY" ? keyBytes(result) : this.encoded(result);
    if (bytes === undefined) return this.letter(node, message, at, "C503", JSON.stringify(result));
    if (kind === "KEY_BY") return this.pass(node, message, { ...at, key: bytes });
    if (bytes !== null) node.made = node.out.push({ value: bytes, ...at, bucket: -1 });
    return undefined;
  }

  encoded(result) {
    if (result === null || result === undefined) return null;
    return typeof result === "string" || result instanceof Uint8Array ? Buffer.from(result) : undefined;
  }

  passAll(node, message, at, result) {
    if (!Array.isArray(result ?? [])) return this.letter(node, message, at, "C503", JSON.stringify(result));
    for (const item of result ?? []) this.pass(node, item, at);
    return undefined;
  }

  leave(node, message, at) {
    const { component, kind } = node;
    let { key } = at;
    if (kind === "KEY" && !node.keys) {
      const given = component?.key ? this.ask(node, message, at, () => component.key(message)) : EMPTY;
      if (given === FAILED) return;
      key = keyBytes(given);
      if (key === undefined) return void this.letter(node, message, at, "C503", JSON.stringify(given));
    }
    const value = this.ask(node, message, at, () => node.form.write(message), "C504");
    if (value === FAILED) return;
    node.made = node.out.push({ ...at, value, key, bucket: kind === "KEY" ? bucketOf(key, this.bucketCount) : -1 });
  }

  /** Yields message i of a frame: its bytes, where it is, and the skip that concerns it. */
  *rows(node, { port, encoding, data, values, sequences, times, keys, first, time, count }) {
    const payloads = encoding === 1 ? this.wire(node.component, data, count) : values;
    [this.port, this.time] = [node.kind === "SOURCE" ? port : LETTERS, time];
    node.into += count;
    for (let i = 0; i < count; i++) {
      const at = { sequence: sequences?.[i] ?? first + i, time: times?.[i] ?? time, key: keys?.[i] ?? EMPTY };
      yield { data: payloads[i], at, ordinal: this.ordinal, skip: this.skips.get(this.ordinal++) };
    }
  }

  wire({ header, length }, data, count) {
    const payloads = [];
    for (let at = 0; at < data.length; ) {
      const from = at + header, size = from > data.length ? Infinity : length(data.subarray(at, from));
      if (from + size > data.length) throw new Failure("W414", "a message on the wire is cut");
      payloads.push(data.subarray(from, (at = from + size)));
    }
    if (payloads.length !== count) throw new Failure("W414", `${payloads.length} messages; expected ${count}`);
    return payloads;
  }

  run(bytes) {
    for (const each of frames(bytes)) {
      const node = this.entries.get(each.port);
      if (!node || STATE_KINDS.includes(node.component?.kind)) throw new Failure("W414", `port ${each.port} is no entry of stage ${this.id}`);
      for (const { data, at, ordinal, skip } of this.rows(node, each)) {
        if (skip) this.letter(node, null, at, skip.code, skip.reason, { raw: data });
        else this.enter(node, data, at, ordinal);
      }
      this.flight.message(0);
    }
  }

  enter(node, data, at, ordinal) {
    this.flight.message(ordinal + 1);
    const decode = node.component?.decode ?? node.form.read;
    try {
      var message = (node.kind === "SOURCE" ? decode : node.form.read)(data);
    } catch (error) {
      return this.letter(node, null, at, "C505", error, { raw: data });
    }
    return this.pass(node, message, at);
  }

  *outputs(letterBytes) {
    for (const { kind, port, out, keys, timestamps, codec } of this.nodes) {
      const isKeyed = kind === "KEY" || (kind === "SEND" && keys), encoding = kind === "SINK" || codec ? 0 : NATIVE;
      for (const messages of this.pieces(out)) {
        const bytes = frame(port, encoding, messages, { keys: isKeyed, times: timestamps });
        yield { index: this.index, port, bucket: messages[0].bucket, frame: bytes };
      }
    }
    const letters = this.letters.map((each) => ({ value: letterBytes(each), sequence: each.sequence, time: this.time, bucket: -1 }));
    for (const messages of this.pieces(letters)) yield { index: this.index, port: LETTERS, bucket: -1, frame: frame(LETTERS, 0, messages) };
  }

  *pieces(messages) {
    const open = new Map(); // by bucket
    for (const message of messages) {
      const piece = open.get(message.bucket) ?? { size: 0, messages: [] };
      open.set(message.bucket, piece);
      piece.messages.push(message);
      piece.size += message.value.length + 24;
      if (piece.size > this.frameBytes) yield (open.delete(message.bucket), piece.messages);
    }
    for (const piece of open.values()) yield piece.messages;
  }

  counts() {
    const isBorder = ({ kind }) => kind === "SEND" || kind === "RECEIVE";
    return this.nodes.map((node) => ({
      path: node.path, messagesIn: isBorder(node) ? 0 : node.into, messagesOut: isBorder(node) ? 0 : node.made, deadLetters: node.dead,
    }));
  }
}

module.exports = { Stage, FAILED, OUTSIDE, NATIVE, EMPTY, native, line, shown };
