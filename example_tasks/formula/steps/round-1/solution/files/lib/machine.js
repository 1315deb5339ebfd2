'use strict';
// The stack machine.

const { FormulaError, RUN } = require('./errors.js');
const { decode } = require('./code.js');
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
    return this.stack.pop();
  }

  run(part) {
    for (let at = 0; ; ) {
      const { name, values, next } = decode(part.code, at);
      at = next;
      switch (name) {
        case 'RET':
          return this.stack.pop();
        case 'PUSH':
          this.stack.push(this.program.constants[values[0]]);
          break;
        case 'LOAD':
          this.stack.push(this.load(this.program.names[values[0]]));
          break;
        case 'NEG':
          this.stack.push(-this.pop());
          break;
        default: {
          const right = this.pop();
          this.stack.push(this.binary(name, this.pop(), right));
        }
      }
    }
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
      default:
        if (right === 0n) this.fail('division by zero');
        return quotient(left * ONE, right);
    }
  }
}

module.exports = { Machine };
