'use strict';
// The listing of a program.

const { instructions } = require('./code.js');
const number = require('./number.js');

function offsetText(offset) {
  return String(offset).padStart(4, '0');
}

function operandText(program, part, operand, value) {
  switch (operand) {
    case 'c':
      return number.show(program.constants[value]);
    case 'n':
      return program.names[value];
    default:
      return String(value);
  }
}

function listing(program) {
  const lines = [];
  for (const part of program.parts) {
    for (const { offset, name, operands, values } of instructions(part.code)) {
      const texts = values.map((value, index) => operandText(program, part, operands[index], value));
      lines.push([offsetText(offset), name, ...texts].join(' '));
    }
  }
  return lines.map((line) => line + '\n').join('');
}

module.exports = { listing };
