'use strict';
// From trees to a program: constants, names, and parts with their code.

const { CODES, NUMBERS } = require('./code.js');
const number = require('./number.js');

const OPERATORS = {
  '+': 'ADD', '-': 'SUB', '*': 'MUL', '/': 'DIV',
  '^': 'POW', '=': 'EQ', '<>': 'NE', '<': 'LT', '<=': 'LE', '>': 'GT', '>=': 'GE',
};

class Compiler {
  constructor() {
    this.constants = new Map();
    this.names = new Map();
    this.parts = [];
  }

  program() {
    return { constants: [...this.constants.keys()], names: [...this.names.keys()], parts: this.parts };
  }

  add(tree) {
    this.code = [];
    this.emit(tree);
    this.code.push(CODES.RET);
    this.parts.push({ code: this.code });
  }

  // The number of a value among others, to which it is added where it is new.
  place(others, value) {
    if (!others.has(value)) others.set(value, others.size);
    return others.get(value);
  }

  wide(name, operand) {
    this.code.push(CODES[name], operand >> 8, operand & 255);
  }

  emit(tree) {
    switch (tree.kind) {
      case 'number':
        return this.wide('PUSH', this.place(this.constants, number.parse(tree.text)));
      case 'name':
        return this.wide('LOAD', this.place(this.names, tree.name));
      case 'negative':
        this.emit(tree.operand);
        return this.code.push(CODES.NEG);
      case 'call':
        return this.emitCall(tree);
      default:
        this.emit(tree.left);
        this.emit(tree.right);
        return this.code.push(CODES[OPERATORS[tree.mark]]);
    }
  }

  emitCall({ name, given }) {
    if (name === 'IF') return this.emitIf(...given);
    given.forEach((each) => this.emit(each));
    return this.code.push(CODES.CALL, NUMBERS[name], given.length);
  }

  emitIf(condition, then, otherwise) {
    this.emit(condition);
    const zero = this.jump('JZ');
    this.emit(then);
    const end = this.jump('JMP');
    this.land(zero);
    this.emit(otherwise);
    this.land(end);
  }

  jump(name) {
    this.wide(name, 0);
    return this.code.length - 2;
  }

  land(jump) {
    [this.code[jump], this.code[jump + 1]] = [this.code.length >> 8, this.code.length & 255];
  }
}

module.exports = { Compiler };
