'use strict';
// The stack machine.

const { FormulaError, RUN, FILE } = require('./errors.js');
const { FUNCTIONS, decode } = require('./code.js');
const { ONE, quotient } = require('./number.js');

class Machine {
  // `values` are those of the command line, by name.
  constructor(program, values) {
    this.program = program;
    this.values = values;
    this.stack = [];
  }

  fail(message) {
    throw new FormulaError(RUN, message);
  }

  pop() {
    if (!this.stack.length) throw new FormulaError(FILE, 'damaged');
    return this.stack.pop();
  }

  run(part) {
    for (let at = 0; ; ) {
      const { name, values, next } = decode(part.code, at);
      at = next;
      switch (name) {
        case 'RET':
          return this.last();
        case 'PUSH':
          this.stack.push(this.program.constants[values[0]]);
          break;
        case 'LOAD':
          this.stack.push(this.load(this.program.names[values[0]]));
          break;
        case 'NEG':
          this.stack.push(-this.pop());
          break;
        case 'JMP':
          at = values[0];
          break;
        case 'JZ':
          if (this.pop() === 0n) at = values[0];
          break;
        case 'CALL':
          this.call(FUNCTIONS[values[0]][0], values[1]);
          break;
        default: {
          const right = this.pop();
          this.stack.push(this.binary(name, this.pop(), right));
        }
      }
    }
  }

  last() {
    const value = this.pop();
    if (this.stack.length) throw new FormulaError(FILE, 'damaged');
    return value;
  }

  load(name) {
    if (!this.values.has(name)) this.fail(`unknown name '${name}'`);
    return this.values.get(name);
  }

  binary(name, left, right) {
    switch (name) {
      case 'ADD':
        return left + right;
      case 'SUB':
        return left - right;
      case 'MUL':
        return quotient(left * right, ONE);
      case 'DIV':
        if (right === 0n) this.fail('division by zero');
        return quotient(left * ONE, right);
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
    return quotient(base ** times * ONE, ONE ** times);
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
    return quotient(value, unit) * unit;
  }
}

module.exports = { Machine };
