// Runs the nodes of a stage: section 4 of SPECIFICATION.md.
"use strict";
const { crc32 } = require("node:zlib");
const { Failure, frame, frames } = require("./frame.js");

const LETTERS = 65535, NATIVE = 16, MAX_VALUE = 48 << 20;
const EMPTY = Buffer.alloc(0);
const firstLine = (error) => String(error?.message ?? error).split("\n")[0];

/** Runs what may fail, and gives its error a code. */
function guard(code, what, run) {
  try {
    return run();
  } catch (error) {
    throw new Failure(code, `${what}; ${firstLine(error)}`, error);
  }
}

function wrong(result, expected) {
  throw new Failure("C503", `returned ${typeof result}; expected ${expected}`);
}

/** Messages and states are JSON where no other worker reads them. */
const native = {
  read: (data) => JSON.parse(data.toString()),
  write: (value) => Buffer.from(JSON.stringify(value)), // throws where there is no JSON
};

/** Returns the bytes of a key: text, bytes, or an integer of 0 to 2^64-1 (a number or a BigInt). */
function keyBytes(key) {
  if (key instanceof Uint8Array || (typeof key === "string" && key.isWellFormed())) return Buffer.from(key);
  const isInteger = typeof key === "bigint" || Number.isSafeInteger(key);
  if (!isInteger || key < 0 || key >= 2n ** 64n) wrong(key, "a string, bytes or an integer of 64 bits");
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(key));
  return bytes;
}

function bucketOf(key, count) {
  const spread = (BigInt(crc32(key)) * 0x9e3779b1n) & 0xffffffffn;
  return Number((spread * BigInt(count)) >> 32n);
}

/** What each kind of node does with a message; `at` has its key, sequence and time. */
const RUN = {
  COMPUTATION: (stage, node, message, at) => stage.pass(node, [node.component.run(message)], at),
  COMPUTATION_MULTI: (stage, node, message, at) => stage.pass(node, node.component.run(message), at),
  KEY_BY(stage, node, message, at) {
    stage.pass(node, [message], { ...at, key: keyBytes(node.component.key(message)) });
  },
  COLLECT: (stage, node, message, at) => stage.pass(node, [message], { ...at, key: EMPTY }),
  KEY(stage, node, message, at) {
    const partition = node.component.key ?? (() => EMPTY);
    const key = node.keys ? at.key : keyBytes(partition(message));
    const value = guard("C504", "the message cannot be serialized", () => native.write(message));
    stage.leave(node, { ...at, key, value, bucket: bucketOf(key, stage.bucketCount) });
  },
  SINK(stage, node, message, at) {
    const result = node.component.encode(message) ?? null;
    if (result === null) return;
    const isSendable = typeof result === "string" || result instanceof Uint8Array;
    if (!isSendable) wrong(result, "a string, bytes or null");
    stage.leave(node, { ...at, key: EMPTY, bucket: -1, value: Buffer.from(result) });
    node.made++;
  },
};

/** One call of a stage: its nodes, with what has left them, and the dead letters. */
class Stage {
  constructor(program, { id, nodes, bucketCount, frameBytes }, skips) {
    Object.assign(this, { id, bucketCount, frameBytes, letters: [], ordinal: 0 });
    this.skips = new Map(skips.map((skip) => [Number(skip.ordinal), skip]));
    this.nodes = nodes.map((node) => this.host(node, program.components[node.path]));
    for (const node of this.nodes) {
      const isExit = node.kind === "KEY" || node.kind === "SINK";
      node.readers = isExit ? [] : this.nodes.filter((each) => each.inputs.includes(node.path));
    }
  }

  host(node, component) {
    const kind = node.kind.replace("NODE_KIND_", "");
    const isHosted = kind === "KEY" ? component?.state : component?.kind === kind.toLowerCase();
    if (!isHosted || node.codec) {
      throw new Failure("W403", `stage "${this.id}" names "${node.path}", which this worker does not host`);
    }
    const name = component.name ?? node.path;
    return { ...node, kind, component, name, out: [], into: 0, made: 0, dead: 0 };
  }

  /** Yields the messages of some frames, {node, value, at}, but for those that are not to be run. */
  *messages(bytes) {
    const entry = (port) => {
      const found = this.nodes.find((node) => !node.inputs.length && node.port === port);
      if (!found) throw new Failure("W410", `port ${port} is no entry of stage "${this.id}"`);
      return found;
    };
    for (const { port, rows } of frames(bytes, (from, wire) => cut(entry(from).component, wire))) {
      const node = entry(port);
      const source = node.kind === "SOURCE" ? port : LETTERS;
      node.into += rows.length;
      for (const { value, key = EMPTY, sequence, time } of rows) {
        const at = { key, sequence, time, source }, skip = this.skips.get(this.ordinal++);
        if (skip) this.letter(node, new Failure(skip.code, skip.reason), at, value);
        else yield { node, value, at };
      }
    }
  }

  /** Runs a message of a source. */
  enter({ node, value, at }) {
    try {
      this.pass(node, [guard("C505", "the decoder failed", () => node.component.decode(value))], at);
    } catch (error) {
      this.letter(node, error, at, value);
    }
  }

  /** Gives what a node has made to its readers, depth first. */
  pass(node, results, at) {
    if (!Array.isArray(results ?? [])) wrong(results, "a list");
    for (const message of (results ?? []).filter((each) => each !== null && each !== undefined)) {
      node.made++;
      for (const reader of node.readers) this.run(reader, message, at);
    }
  }

  run(node, message, at) {
    if (node.kind !== "KEY") node.into++;
    try {
      RUN[node.kind](this, node, message, at);
    } catch (error) {
      let input = EMPTY;
      try {
        input = native.write(message);
      } catch {
        // It is a dead letter all the same.
      }
      this.letter(node, error, at, input);
    }
  }

  leave(node, message) {
    const size = message.value.length + message.key.length;
    if (size > MAX_VALUE) throw new Failure("C525", `the value has ${size} bytes; at most ${MAX_VALUE}`);
    node.out.push(message);
  }

  letter(node, error, at, input) {
    const isFailure = error instanceof Failure, hasKey = node.kind.startsWith("STATE");
    const isKept = input.length > 0 && input.length + at.key.length <= MAX_VALUE;
    this.letters.push({
      code: isFailure ? error.code : "C501", path: node.path, step: node.name, sequence: at.sequence,
      port: at.source, timestampMs: at.time, hasKey, key: hasKey ? at.key : EMPTY,
      input: isKept ? input : EMPTY, encoding: isKept && node.kind !== "SOURCE" ? NATIVE : 0,
      preview: input.toString("utf8", 0, 200), error: firstLine(error),
      traceback: (isFailure ? error.cause : error)?.stack ?? "",
    });
    node.dead++;
  }

  /** Yields what a call gives, in frames of about `frameBytes`. */
  *outputs(index, letterBytes) {
    const letters = this.letters.map((each) => ({ ...each, value: letterBytes(each), time: 0, bucket: -1 }));
    for (const { kind, port, out } of [...this.nodes, { port: LETTERS, out: letters }]) {
      for (const part of parts(out, "bucket", this.frameBytes)) {
        const isKey = kind === "KEY";
        yield { index, port, bucket: part[0].bucket, frame: frame(port, isKey ? NATIVE : 0, part, isKey) };
      }
    }
  }

  counts() {
    return this.nodes.map(({ path, into, made, dead }) => {
      return { path, messagesIn: into, messagesOut: made, deadLetters: dead };
    });
  }
}

/** Cuts messages as they were on the wire. */
function cut({ header, length }, wire) {
  const payloads = [];
  for (let at = 0, end = 0; at < wire.length; at = end) {
    end = at + header + length(wire.subarray(at, at + header));
    if (!(end <= wire.length)) throw new Failure("W410", "a message on the wire is cut");
    payloads.push(wire.subarray(at + header, end));
  }
  return payloads;
}

/** Yields lists of messages that have a property in common, each list of about so many bytes. */
function* parts(messages, property, limit) {
  const open = new Map();
  for (const message of messages) {
    const group = message[property], size = message.value.length + 24;
    let part = open.get(group) ?? { size: 0, messages: [] };
    if (part.size > 0 && part.size + size > limit) {
      yield part.messages;
      part = { size: 0, messages: [] };
    }
    part.messages.push(message);
    part.size += size;
    open.set(group, part);
  }
  for (const part of open.values()) yield part.messages;
}

module.exports = { Stage, NATIVE, firstLine, guard, native, parts, wrong };
