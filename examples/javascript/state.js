// The states of a bucket, and what runs on them: section 4 of SPECIFICATION.md, "ProcessState".
"use strict";
const { Failure, frame, frames } = require("./frame.js");
const { NATIVE, guard, native, parts, wrong } = require("./stage.js");

const ENTRY_BYTES = 1 << 20;
const MAX_STATE = Math.min(4 << 20, Number(process.env.WALLAROO_MAX_STATE_BYTES ?? Infinity));

function written({ form, live, key }, code) {
  const data = guard(code, `the state of key "${key}" cannot be serialized`, () => form.write(live));
  if (data.length <= MAX_STATE) return data;
  throw new Failure("C525", `the state of key "${key}" has ${data.length} bytes; at most ${MAX_STATE}`);
}

/** The states of one bucket. A cell has `live` once it was asked for; `data` are its bytes, if known. */
class Bucket {
  constructor() {
    this.cells = new Map(); // by port of their log, and key
    this.changed = new Set();
  }

  read(entries) {
    for (const { port, rows } of entries.flatMap((entry) => [...frames(entry)])) {
      for (const { key, value, isAbsent } of rows) {
        if (!key) throw new Failure("W410", "an entry of a state log has no key");
        const name = `${port} ${key.toString("latin1")}`;
        if (isAbsent) this.cells.delete(name);
        else this.cells.set(name, { name, port, key, data: value, isSaved: true });
      }
    }
  }

  /** Returns the cell of a key with its state live. */
  open({ statePort: port, component }, key) {
    const name = `${port} ${key.toString("latin1")}`, form = { ...native, ...component.state };
    if (!this.cells.has(name)) this.cells.set(name, { name, port, key, live: form.build(), isNew: true });
    const cell = Object.assign(this.cells.get(name), { form });
    const read = () => form.read(cell.data);
    if (!("live" in cell)) cell.live = guard("C507", `the state of key "${key}" cannot be read`, read);
    return cell;
  }

  /**
   * Runs messages in the order of their sequences. Returns the changed states as entries of the log; all that
   * were ever persisted where `isWhole`; null when user code failed, for then states are as it left them.
   * A careful run writes each state after each message, and puts it back when the next one fails.
   */
  run(stage, bytes, isCareful, isWhole) {
    const messages = [...stage.messages(bytes)].sort((a, b) => a.at.sequence - b.at.sequence);
    try {
      for (const message of messages) this.enter(stage, message, isCareful);
      return this.changes(isWhole);
    } catch (error) {
      if (isCareful || error.code === "C507") throw error;
      return null;
    }
  }

  enter(stage, { node, value, at }, isCareful) {
    const { keys, state } = node.component;
    if (keys && !keys.some((key) => key.equals(at.key))) {
      const failure = new Failure("C502", `key "${at.key}" is not in the list of state "${state.name}"`);
      return stage.letter(node, failure, at, value);
    }
    const cell = this.open(node, at.key);
    try {
      const message = guard("C504", "the message cannot be read", () => native.read(value));
      stage.pass(node, this.compute(node, cell, message, isCareful), at);
    } catch (error) {
      if (!isCareful) throw error;
      stage.letter(node, error, at, value);
      if (cell.isNew) this.cells.delete(cell.name);
      else cell.live = guard("C511", `key "${at.key}" has no last state`, () => cell.form.read(cell.data));
    }
    return undefined;
  }

  /** Returns what a state computation gives, and notes its change. */
  compute({ component, kind }, cell, message, isCareful) {
    const pair = component.run(message, cell.live);
    if (!Array.isArray(pair) || pair.length !== 2) wrong(pair, "output and whether to persist");
    const [result, persists] = pair;
    if (kind === "STATE_COMPUTATION_MULTI" && !Array.isArray(result ?? [])) wrong(result, "a list");
    let data = null;
    try {
      if (isCareful) data = written(cell, "C504");
    } catch (error) {
      if (persists) throw error; // else nobody asks for it
    }
    Object.assign(cell, { data, isNew: false });
    if (persists) this.changed.add(cell);
    return kind === "STATE_COMPUTATION" ? [result] : result;
  }

  changes(isWhole) {
    const all = isWhole ? [...this.cells.values()].filter((cell) => cell.isSaved) : [];
    const states = [...new Set([...all, ...this.changed])].map((cell) => {
      const value = cell.data ?? written(cell, "C511");
      return { key: cell.key, port: cell.port, value, sequence: 0, time: 0 };
    });
    return [...parts(states, "port", ENTRY_BYTES)].map((part) => frame(part[0].port, NATIVE, part, true));
  }
}

module.exports = { Bucket };
