'use strict';
// From trees to a program: constants, names, and parts with their code.

const { CODES } = require('./code.js');
const number = require('./number.js');

const OPERATORS = {
  '+': 'ADD', '-': 'SUB', '*': 'MUL', '/': 'DIV',
};

class Compiler {
  constructor() {
    this.constants = [];
    this.names = [];
    this.parts = [];
  }

  program() {
    return { constants: this.constants, names: this.names, parts: this.parts };
  }

  add(tree) {
    this.code = [];
    this.emit(tree);
    this.code.push(CODES.RET);
    this.parts.push({ code: this.code });
  }

  // The index of a value in a list, to which it is added where it is new.
  place(list, value) {
    const found = list.indexOf(value);
    return found >= 0 ? found : list.push(value) - 1;
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
      default:
        this.emit(tree.left);
        this.emit(tree.right);
        return this.code.push(CODES[OPERATORS[tree.mark]]);
    }
  }
}

module.exports = { Compiler };
