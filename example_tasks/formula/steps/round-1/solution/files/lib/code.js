'use strict';
// The instructions: their codes, and what stands behind each.

// Operands: c constant, n name, j offset (two bytes each); f function, b count (one byte each).
const INSTRUCTIONS = [
  [1, 'PUSH', 'c'],
  [2, 'LOAD', 'n'],
  [3, 'ADD', ''],
  [4, 'SUB', ''],
  [5, 'MUL', ''],
  [6, 'DIV', ''],
  [7, 'NEG', ''],
  [18, 'RET', ''],
];
const BY_CODE = new Map(INSTRUCTIONS.map(([code, name, operands]) => [code, { name, operands }]));
const CODES = Object.fromEntries(INSTRUCTIONS.map(([code, name]) => [name, code]));

function sizeOf(operand) {
  return 'cnjd'.includes(operand) ? 2 : 1;
}

// The instruction at an offset: its name, its operands, and where the next one is. Null where there is none.
function decode(code, offset) {
  const known = BY_CODE.get(code[offset]);
  if (!known) return null;
  const values = [];
  let next = offset + 1;
  for (const operand of known.operands) {
    values.push(sizeOf(operand) === 2 ? code[next] * 256 + code[next + 1] : code[next]);
    next += sizeOf(operand);
  }
  if (next > code.length) return null;
  return { name: known.name, operands: known.operands, offset, values, next };
}

function* instructions(code) {
  for (let at = 0; at < code.length; ) {
    const found = decode(code, at);
    yield found;
    at = found.next;
  }
}

module.exports = { CODES, decode, instructions };
