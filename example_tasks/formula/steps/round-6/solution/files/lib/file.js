'use strict';
// Saved programs.

const fs = require('fs');
const { FormulaError, FILE } = require('./errors.js');
const { FUNCTIONS, decode, instructions } = require('./code.js');
const { LATEST, RULES } = require('./machine.js');
const number = require('./number.js');

const MAGIC = Buffer.from('PFML');
const CONSTANT = /^[0-9]+(\.[0-9]{1,6})?$/;
const NAME = /^[A-Za-z][A-Za-z0-9_]*$/;
const FORMAT = /^(#,##)?0(\.0{1,6})?%?$/;
const KINDS = ['formula', 'cell', 'def'];

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

function partBytes(program, part) {
  const names = part.parameters.map((name) => program.names.indexOf(name));
  return [
    KINDS.indexOf(part.kind),
    ...wide(part.name ? program.names.indexOf(part.name) : 0),
    part.parameters.length,
    ...names.flatMap(wide),
    ...text(part.format),
    ...wide(part.code.length),
    ...part.code,
  ];
}

// The bytes of a program in the latest version.
function save(program) {
  const bytes = Buffer.from([
    ...MAGIC,
    LATEST,
    ...texts(program.constants.map(number.show)),
    ...texts(program.names),
    ...wide(program.parts.length),
    ...program.parts.flatMap((part) => partBytes(program, part)),
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

function readPart(reader, program) {
  const kind = KINDS[reader.byte()];
  const named = () => {
    const index = reader.wide();
    if (index >= program.names.length) throw new Damaged();
    return program.names[index];
  };
  let name = '';
  if (kind === 'formula') reader.wide();
  else name = named();
  const parameters = Array.from({ length: reader.byte() }, named);
  const format = reader.text();
  if (!kind || (parameters.length && kind !== 'def') || (format && (kind !== 'cell' || !FORMAT.test(format)))) {
    throw new Damaged();
  }
  const part = { kind, name, parameters, format, code: reader.code() };
  return part;
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
    if (operands === 'a' && values[0] >= part.parameters.length) throw new Damaged();
    if (operands === 'db') {
      const called = program.parts.filter((each) => each.kind === 'def')[values[0]];
      if (!called || called.parameters.length !== values[1]) throw new Damaged();
    }
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
  const version = bytes[4];
  const program = { version, constants, names, parts: [] };
  if (version === 1) {
    program.parts.push({ kind: 'formula', name: '', parameters: [], format: '', code: reader.code() });
  } else {
    const count = reader.wide();
    for (let index = 0; index < count; index += 1) program.parts.push(readPart(reader, program));
  }
  if (reader.at !== body.length) throw new Damaged();
  if (program.parts.length > 1 && program.parts.some((part) => part.kind === 'formula')) throw new Damaged();
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
  if (!(bytes[4] in RULES)) refuse(`version ${bytes[4]}`);
  try {
    return parse(bytes);
  } catch (error) {
    if (!(error instanceof Damaged)) throw error;
    return refuse('damaged');
  }
}

module.exports = { load, save };
