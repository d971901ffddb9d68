// State: calls of buckets, their logs, and the cache of live copies; section 4 of SPECIFICATION.md, "ProcessState".
"use strict";
const { Failure, frames, frame } = require("./frame.js");
const { FAILED, OUTSIDE, NATIVE, native, line, shown } = require("./stage.js");

const CELL_BYTES = 200, LIVE = 5; // what a state takes beside its bytes, and a live one in their place
const ENTRY_BYTES = 1 << 20, PIECE_BYTES = 4 << 20, PIECE_HEADER = 19;

/** The states of one bucket: by port of their log, by key. A cell has `data` while nobody has asked for its state. */
class Bucket {
  constructor() {
    this.tables = new Map();
    this.parts = []; // of a large state whose pieces are not all there
  }
  table(port) {
    if (!this.tables.has(port)) this.tables.set(port, new Map());
    return this.tables.get(port);
  }
  read(entries) {
    for (const each of entries.flatMap((entry) => [...frames(entry)])) {
      if (each.count && !each.keys) throw new Failure("W414", "an entry of a state log has no keys");
      this.joined(each)?.values.forEach((data, i) => {
        const name = each.keys[i].toString("latin1");
        this.table(each.port).delete(name);
        if (!each.absent(i)) this.table(each.port).set(name, { data, size: data.length, isSaved: true });
      });
    }
  }
  /** Returns a frame of states, that of a large one after its last piece; undefined after the others. */
  joined(each) {
    const [head] = each.headers;
    if (!head?.length) return this.end(), each;
    const isPiece = each.count === 1 && head.length === PIECE_HEADER && head.toString("latin1", 2, 7) === "piece";
    const [number, count] = isPiece ? [head.readUInt32LE(11), head.readUInt32LE(15)] : [0, 0];
    const belongs = [each.port, each.encoding, each.keys[0].toString("hex"), count].join();
    if (number >= count || number !== this.parts.length || (number && belongs !== this.belongs)) {
      throw new Failure("W414", `piece ${number} of ${count} of a state comes after ${this.parts.length} pieces`);
    }
    this.belongs = belongs;
    this.parts.push(each.values[0]);
    return number + 1 < count ? undefined : { ...each, values: [Buffer.concat(this.parts.splice(0))] };
  }
  /** Notes that no piece follows now. */
  end() {
    if (this.parts.length) throw new Failure("W414", `a state ends after ${this.parts.length} pieces`);
  }
  cells() {
    return [...this.tables.values()].flatMap((table) => [...table.values()]);
  }
  cost() {
    return this.cells().reduce((sum, { data, size }) => sum + CELL_BYTES + size * (data ? 1 : LIVE), 0);
  }
}

/** Copies of buckets under their versions; those that were not used for longest leave first. */
class Cache {
  constructor(limit) {
    Object.assign(this, { limit, total: 0, copies: new Map() });
  }
  take(name, version) {
    const found = this.copies.get(name);
    this.copies.delete(name);
    this.total -= found?.cost ?? 0;
    return found?.version === version ? found.bucket : undefined;
  }
  file(name, version, bucket) {
    const cost = bucket.cost();
    this.copies.set(name, { version, bucket, cost });
    this.total += cost;
    for (const [old, copy] of this.copies) {
      if (this.total <= this.limit) break;
      this.copies.delete(old);
      this.total -= copy.cost;
    }
    return cost;
  }
}

class Spoilt extends Error {}

/** One try of a bucket call. `isCareful`: message by message, so that one that fails leaves its state as it was. */
class Run {
  constructor(stage, bucket, { isCareful, checks, isAtWork }) {
    Object.assign(this, { stage, bucket, isCareful, checks, isAtWork, changed: new Map(), saved: new Map() });
  }

  /** Runs the messages in the order of their sequences, whatever the order of the frames; returns false when user code failed. */
  messages(bytes) {
    const { stage } = this, rows = [];
    for (const each of bytes.flatMap((part) => [...frames(part)])) {
      const node = stage.entries.get(each.port);
      if (!node?.component?.state || (each.count && !each.keys)) throw new Failure("W414", `a frame of port ${each.port} is not for stage ${stage.id}`);
      for (const row of stage.rows(node, each)) rows.push({ node, ...row });
    }
    stage.flight.message(OUTSIDE);
    rows.sort((a, b) => a.at.sequence - b.at.sequence);
    return rows.every((row) => this.one(row));
  }

  one({ node, data, at, ordinal, skip }) {
    const { stage } = this, { component } = node, { key } = at;
    let message = null;
    if (this.isAtWork && !skip) stage.flight.message(ordinal + 1);
    try {
      message = node.form.read(data);
    } catch (error) {
      if (!skip) return stage.letter(node, null, at, node.codec ? "C505" : "C504", `it is not in codec "${node.codec}"; ${line(error)}`, { raw: data, key });
    }
    if (skip) return stage.letter(node, message, at, skip.code, skip.reason, { key });
    const isClosed = component.keys && !component.keys.some((each) => each.equals(key));
    if (isClosed) return stage.letter(node, message, at, "C502", `key ${shown(key)} is not in the list of state "${component.state.name}"`, { key });
    return this.compute(node, message, at, ordinal);
  }

  compute(node, message, at, ordinal) {
    const { stage, isCareful, checks } = this, { component } = node, { key } = at;
    const table = this.bucket.table(node.statePort), name = key.toString("latin1");
    const cell = this.cell(table, name, component, key);
    if (isCareful) this.save(name, node.statePort, () => this.written(component, cell));
    stage.flight.message(ordinal + 1);
    try {
      const pair = component.run(message, cell.live);
      if (!Array.isArray(pair) || pair.length !== 2) throw new TypeError(`returned ${JSON.stringify(pair)}; expected output and whether to persist`, { cause: "C503" });
      const [result, persists] = pair;
      if (isCareful) this.check(node, cell, name, persists);
      if (persists) this.changed.set(`${node.statePort} ${name}`, { node, key, cell });
      if (component.kind === "state_computation") stage.pass(node, result, at);
      else if (stage.passAll(node, message, at, result) === FAILED) throw new TypeError("returned no list", { cause: "C503" });
    } catch (error) {
      if (!isCareful) return false;
      this.putBack(table, name, node, component);
      stage.letter(node, message, at, error.cause ?? "C501", error, { key });
    }
    stage.flight.message(OUTSIDE);
    return true;
  }

  cell(table, name, component, key) {
    if (!table.has(name)) table.set(name, { live: component.state.build(), size: 0, isSaved: false });
    const cell = table.get(name);
    if (cell.data) {
      try {
        cell.live = (component.state.read ?? native.read)(cell.data);
      } catch (error) {
        throw new Failure("C507", `the state of key ${shown(key)} cannot be read; ${line(error)}`);
      }
      cell.data = null;
    }
    return cell;
  }

  written(component, cell) {
    return cell.data ?? (component.state.write ?? native.write)(cell.live);
  }

  /** Notes what a key's state is, if it can be written; a key that has had none before has none to go back to. */
  save(name, port, write) {
    const cell = this.bucket.table(port).get(name), id = `${port} ${name}`;
    if (!cell.isSaved && !cell.isRun) return;
    try {
      this.saved.set(id, write());
    } catch {
      // An older one stands, or none.
    }
  }

  check(node, cell, name, persists) {
    const before = this.saved.get(`${node.statePort} ${name}`) ?? native.write(null);
    let after = null;
    try {
      after = this.written(node.component, cell);
    } catch (error) {
      if (persists) throw new Spoilt(`the state cannot be serialized; ${line(error)}`, { cause: "C504" });
    }
    if (this.checks && !persists && after && !after.equals(before)) throw new Spoilt("it changed the state without persisting it", { cause: "C510" });
    cell.isRun = true;
  }

  putBack(table, name, node, component) {
    const saved = this.saved.get(`${node.statePort} ${name}`);
    if (saved === undefined) table.delete(name);
    else table.get(name).live = (component.state.read ?? native.read)(saved);
  }

  /** Returns the frames of the states that changed, or of all that were ever persisted. */
  changes(isWhole) {
    const found = new Map(this.changed), byPort = new Map();
    for (const node of isWhole ? this.stage.entries.values() : []) {
      for (const [name, cell] of this.bucket.table(node.statePort)) {
        if (cell.isSaved) found.set(`${node.statePort} ${name}`, { node, key: Buffer.from(name, "latin1"), cell });
      }
    }
    for (const { node, key, cell } of found.values()) {
      try {
        var value = this.written(node.component, cell);
      } catch (error) {
        throw this.isCareful ? new Failure("C511", `${node.name}: the state of key ${shown(key)} cannot be serialized; ${line(error)}`) : new Spoilt();
      }
      Object.assign(cell, { size: value.length, isSaved: true, isRun: false });
      const messages = byPort.get(node.statePort) ?? [];
      byPort.set(node.statePort, [...messages, { key, value }]);
    }
    return [...byPort].flatMap(([port, messages]) => entriesOf(port, messages));
  }
}

/** Yields the entries of a state that is too large for one. */
function* piecesOf(port, { key, value }) {
  const count = Math.ceil(value.length / PIECE_BYTES);
  for (let number = 0; number < count; number++) {
    const head = Buffer.alloc(PIECE_HEADER);
    head.writeUInt16LE(5);
    head.write("piece", 2);
    [8, number, count].forEach((each, i) => head.writeUInt32LE(each, 7 + 4 * i));
    const part = value.subarray(number * PIECE_BYTES, (number + 1) * PIECE_BYTES);
    yield frame(port, NATIVE, [{ key, value: part }], { keys: true, sequences: false, headers: [head] });
  }
}

function entriesOf(port, all) {
  const isLarge = ({ value }) => value.length > PIECE_BYTES, messages = all.filter((each) => !isLarge(each));
  const entries = all.filter(isLarge).flatMap((each) => [...piecesOf(port, each)]);
  for (let start = 0, end = 0; start < messages.length; start = end) {
    for (let size = 0; end < messages.length && (end === start || size < ENTRY_BYTES); end++) size += messages[end].value.length + messages[end].key.length + 16;
    entries.push(frame(port, NATIVE, messages.slice(start, end), { keys: true, sequences: false }));
  }
  return entries;
}

module.exports = { Bucket, Cache, Run, Spoilt };
