'use strict';
// The stack machine.

const { FormulaError, RUN, FILE } = require('./errors.js');
const { FUNCTIONS, decode } = require('./code.js');
const { ONE, quotient } = require('./number.js');

// What a version of the file format promises, also about programs that were written long ago.
const RULES = {
  1: { evenHalves: false },
  2: { evenHalves: true },
};
const LATEST = 2;

class Machine {
  // `values` are those of the command line, by name; they go before cells.
  constructor(program, values) {
    this.program = program;
    this.values = values;
    this.stack = [];
    this.frames = [];
    this.cells = new Map();
    this.decoded = new Map(); // Instructions by part and offset.
    this.parts = new Map();
    for (const part of program.parts) if (part.kind === 'cell') this.parts.set(part.name, part);
    this.definitions = program.parts.filter((part) => part.kind === 'def');
    this.rules = RULES[program.version || LATEST];
  }

  fail(message) {
    this.failIn(this.frames.map((frame) => frame.part.kind === 'cell' && frame.part.name).filter(Boolean).pop(), message);
  }

  failIn(cell, message) {
    throw new FormulaError(RUN, cell ? `${cell}: ${message}` : message);
  }

  pop() {
    if (this.stack.length <= this.frames[this.frames.length - 1].floor) throw new FormulaError(FILE, 'damaged');
    return this.stack.pop();
  }

  // The value of a cell of the sheet.
  cell(part) {
    if (this.values.has(part.name)) return this.values.get(part.name);
    return this.cells.has(part.name) ? this.cells.get(part.name) : this.run(part);
  }

  // Calls and cells that are not computed yet have frames here, and none in JavaScript: only memory bounds how deep they go.
  run(part) {
    this.enter(part, 0);
    while (this.frames.length) this.step(this.frames[this.frames.length - 1]);
    return this.stack.pop();
  }

  enter(part, count) {
    if (part.kind === 'cell') this.cells.set(part.name, null);
    if (!this.decoded.has(part)) this.decoded.set(part, new Map());
    const code = this.decoded.get(part);
    this.frames.push({ part, code, at: 0, first: this.stack.length - count, floor: this.stack.length });
  }

  step(frame) {
    if (!frame.code.has(frame.at)) frame.code.set(frame.at, decode(frame.part.code, frame.at));
    const { name, values, next } = frame.code.get(frame.at);
    frame.at = next;
    switch (name) {
      case 'RET':
        return this.leave(frame);
      case 'PUSH':
        return this.stack.push(this.program.constants[values[0]]);
      case 'LOAD':
        return this.load(this.program.names[values[0]]);
      case 'ARG':
        return this.stack.push(this.stack[frame.first + values[0]]);
      case 'NEG':
        return this.stack.push(-this.pop());
      case 'JMP':
        frame.at = values[0];
        return undefined;
      case 'JZ':
        if (this.pop() === 0n) frame.at = values[0];
        return undefined;
      case 'CALL':
        return this.call(FUNCTIONS[values[0]][0], values[1]);
      case 'INVOKE':
        return this.invoke(this.definitions[values[0]], values[1]);
      default:
        {
          const right = this.pop();
          return this.stack.push(this.binary(name, this.pop(), right));
        }
    }
  }

  taken(count) {
    const given = [];
    while (given.length < count) given.unshift(this.pop());
    return given;
  }

  invoke(part, count) {
    this.stack.push(...this.taken(count));
    this.enter(part, count);
  }

  leave(frame) {
    const value = this.pop();
    if (this.stack.length !== frame.floor) throw new FormulaError(FILE, 'damaged');
    this.stack.length = frame.first;
    this.frames.pop();
    if (frame.part.kind === 'cell') this.cells.set(frame.part.name, value);
    this.stack.push(value);
  }

  load(name) {
    if (this.values.has(name)) return this.stack.push(this.values.get(name));
    if (!this.parts.has(name)) this.fail(`unknown name '${name}'`);
    if (!this.cells.has(name)) return this.enter(this.parts.get(name), 0);
    if (this.cells.get(name) === null) this.failIn(name, 'circular');
    return this.stack.push(this.cells.get(name));
  }

  binary(name, left, right) {
    switch (name) {
      case 'ADD':
        return left + right;
      case 'SUB':
        return left - right;
      case 'MUL':
        return quotient(left * right, ONE, this.rules.evenHalves);
      case 'DIV':
        if (right === 0n) this.fail('division by zero');
        return quotient(left * ONE, right, this.rules.evenHalves);
      case 'POW':
        return this.power(left, right);
      default:
        return this.compare(name, left, right) ? ONE : 0n;
    }
  }

  compare(name, left, right) {
    switch (name) {
      case 'EQ':
        return left === right;
      case 'NE':
        return left !== right;
      case 'LT':
        return left < right;
      case 'LE':
        return left <= right;
      case 'GT':
        return left > right;
      default:
        return left >= right;
    }
  }

  power(base, exponent) {
    if (exponent < 0n || exponent > 100n * ONE || exponent % ONE !== 0n) this.fail('bad exponent');
    const times = exponent / ONE;
    return quotient(base ** times * ONE, ONE ** times, this.rules.evenHalves);
  }

  call(name, count) {
    const given = [];
    while (given.length < count) given.unshift(this.pop());
    this.stack.push(this.result(name, given));
  }

  result(name, given) {
    switch (name) {
      case 'MIN':
        return given.reduce((least, each) => (each < least ? each : least));
      case 'MAX':
        return given.reduce((most, each) => (each > most ? each : most));
      case 'ABS':
        return given[0] < 0n ? -given[0] : given[0];
      default:
        return this.round(...given);
    }
  }

  round(value, digits) {
    if (digits < 0n || digits > 6n * ONE || digits % ONE !== 0n) this.fail('bad digits');
    const unit = 10n ** (6n - digits / ONE);
    return quotient(value, unit, this.rules.evenHalves) * unit;
  }
}

module.exports = { Machine, LATEST, RULES };
