'use strict';
// Saved programs.

const fs = require('fs');
const { FormulaError, FILE } = require('./errors.js');
const { FUNCTIONS, decode } = require('./code.js');
const number = require('./number.js');

const MAGIC = Buffer.from('PFML');
const VERSION = 1;
const CONSTANT = /^[0-9]+(\.[0-9]{1,6})?$/;
const NAME = /^[A-Za-z][A-Za-z0-9_]*$/;

class Damaged extends Error {}

// CRC-32 as in ZIP files and PNG.
function checksum(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return (sum ^ 0xffffffff) >>> 0;
}

function wide(value) {
  return [value >> 8, value & 255];
}

function text(value) {
  return [value.length, ...Buffer.from(value)];
}

function texts(values) {
  return [...wide(values.length), ...values.flatMap(text)];
}

function save(program) {
  const bytes = Buffer.from([
    ...MAGIC,
    VERSION,
    ...texts(program.constants.map(number.show)),
    ...texts(program.names),
    ...wide(program.parts[0].code.length),
    ...program.parts[0].code,
  ]);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(checksum(bytes));
  return Buffer.concat([bytes, sum]);
}

class Reader {
  constructor(bytes, at) {
    this.bytes = bytes;
    this.at = at;
  }

  take(count) {
    this.at += count;
    if (this.at > this.bytes.length) throw new Damaged();
    return this.bytes.subarray(this.at - count, this.at);
  }

  byte() {
    return this.take(1)[0];
  }

  wide() {
    return this.take(2).readUInt16BE();
  }

  text() {
    return this.take(this.byte()).toString('latin1');
  }

  texts(pattern) {
    return Array.from({ length: this.wide() }, () => {
      const value = this.text();
      if (!pattern.test(value)) throw new Damaged();
      return value;
    });
  }

  code() {
    return [...this.take(this.wide())];
  }
}

// Refuses code that no compiler has written.
function check(program, part) {
  const starts = new Set();
  const jumps = [];
  let last = null;
  for (let at = 0; at < part.code.length; at = last.next) {
    last = decode(part.code, at);
    if (!last) throw new Damaged();
    starts.add(at);
    const { operands, values } = last;
    if (operands === 'c' && values[0] >= program.constants.length) throw new Damaged();
    if (operands === 'n' && values[0] >= program.names.length) throw new Damaged();
    if (operands === 'j') jumps.push([at, values[0]]);
    if (operands === 'fb') checkCall(FUNCTIONS[values[0]], values[1]);
  }
  if (!last || last.name !== 'RET') throw new Damaged();
  if (jumps.some(([from, to]) => to <= from || !starts.has(to))) throw new Damaged();
}

function checkCall(called, count) {
  if (!called || count < called[1] || count > called[2]) throw new Damaged();
}

function parse(bytes) {
  const body = bytes.subarray(0, -4);
  if (bytes.length < 9 || checksum(body) !== bytes.readUInt32BE(body.length)) throw new Damaged();
  const reader = new Reader(body, 5);
  const constants = reader.texts(CONSTANT).map(number.parse);
  const names = reader.texts(NAME);
  const program = { constants, names, parts: [{ code: reader.code() }] };
  if (reader.at !== body.length) throw new Damaged();
  program.parts.forEach((part) => check(program, part));
  return program;
}

function load(path) {
  const refuse = (message) => {
    throw new FormulaError(FILE, `${path}: ${message}`);
  };
  let bytes;
  try {
    bytes = fs.readFileSync(path);
  } catch {
    return refuse('not a formula file');
  }
  if (bytes.length < 5 || !bytes.subarray(0, 4).equals(MAGIC)) refuse('not a formula file');
  if (bytes[4] !== VERSION) refuse(`version ${bytes[4]}`);
  try {
    return parse(bytes);
  } catch (error) {
    if (!(error instanceof Damaged)) throw error;
    return refuse('damaged');
  }
}

module.exports = { load, save };
