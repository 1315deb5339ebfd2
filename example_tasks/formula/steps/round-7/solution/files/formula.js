'use strict';
// Formulas for price sheets: the library and the program.

const fs = require('fs');
const { Compiler } = require('./lib/compiler.js');
const { FormulaError } = require('./lib/errors.js');
const file = require('./lib/file.js');
const { listing } = require('./lib/listing.js');
const { Machine, LATEST, RULES, STEP_LIMIT } = require('./lib/machine.js');
const number = require('./lib/number.js');
const { Parser } = require('./lib/parser.js');
const { compileSheet } = require('./lib/sheet.js');

const GIVEN = /^([A-Za-z][A-Za-z0-9_]*)=(-?[0-9]+(\.[0-9]{1,6})?)$/;
const USAGE = `usage: formula.js eval FORMULA [NAME=NUMBER]...
       formula.js list FORMULA
       formula.js list --file FILE
       formula.js list --sheet SHEET
       formula.js build FORMULA FILE
       formula.js build --sheet SHEET FILE
       formula.js run FILE [NAME=NUMBER]...
       formula.js sheet SHEET [NAME=NUMBER]...
`;

class Usage extends Error {}

function compile(text) {
  const compiler = new Compiler();
  compiler.add(new Parser(text).whole());
  return compiler.program();
}

function valuesOf(words) {
  return new Map(words.map((word) => {
    const found = GIVEN.exec(word);
    if (!found) throw new Usage();
    const value = number.parse(found[2].replace('-', ''));
    return [found[1], found[2].startsWith('-') ? -value : value];
  }));
}

// The values of a call of the library.
function valuesIn(object = {}) {
  return valuesOf(Object.entries(object).map(([name, value]) => `${name}=${value}`));
}

function evaluate(text, values) {
  return results(compile(text), valuesIn(values)).trimEnd();
}

// What a program prints: the value of its formula, or a line for each of its cells.
function results(program, values, limit) {
  const machine = new Machine(program, values, limit);
  const rules = RULES[program.version || LATEST];
  const lines = [];
  for (const part of program.parts) {
    if (part.kind === 'formula') lines.push(number.show(machine.run(part)));
    if (part.kind === 'cell') lines.push(`${part.name} = ${shown(machine.cell(part), part.format, rules)}`);
  }
  return lines.map((line) => line + '\n').join('');
}

function shown(value, format, rules) {
  return format ? number.inFormat(value, format, rules) : number.show(value);
}

function readSheet(path) {
  let text;
  try {
    text = fs.readFileSync(path, 'utf8');
  } catch {
    throw new Usage();
  }
  return compileSheet(text);
}

function write(path, bytes) {
  try {
    fs.writeFileSync(path, bytes);
  } catch {
    throw new Usage();
  }
  return '';
}

function run(path, values, limit) {
  const program = file.load(path);
  try {
    return results(program, values, limit);
  } catch (error) {
    if (error.message === 'damaged') error.message = `${path}: damaged`;
    throw error;
  }
}

// The step limit, and the words that are left without it.
function limitOf(words) {
  if (words[0] !== '--steps') return [STEP_LIMIT, words];
  if (!/^[1-9][0-9]{0,6}$/.test(words[1]) || Number(words[1]) > 1000000) throw new Usage();
  return [Number(words[1]), words.slice(2)];
}

function list(words) {
  if (words.length === 1) return listing(compile(words[0]));
  if (words.length === 2 && words[0] === '--file') return listing(file.load(words[1]));
  if (words.length === 2 && words[0] === '--sheet') return listing(readSheet(words[1]));
  throw new Usage();
}

function build(words) {
  if (words.length === 2) return write(words[1], file.save(compile(words[0])));
  if (words.length === 3 && words[0] === '--sheet') return write(words[2], file.save(readSheet(words[1])));
  throw new Usage();
}

function main([command, ...words]) {
  if (command === 'list') return list(words);
  if (command === 'build') return build(words);
  const [limit, [subject, ...given]] = limitOf(words);
  if (subject === undefined) throw new Usage();
  if (command === 'eval') return results(compile(subject), valuesOf(given), limit);
  if (command === 'run') return run(subject, valuesOf(given), limit);
  if (command === 'sheet') return results(readSheet(subject), valuesOf(given), limit);
  throw new Usage();
}

function start() {
  try {
    process.stdout.write(main(process.argv.slice(2)));
  } catch (error) {
    if (error instanceof Usage) {
      process.stderr.write(USAGE);
      process.exitCode = 1;
    } else if (error instanceof FormulaError) {
      process.stderr.write(`error: ${error.message}\n`);
      process.exitCode = error.exitCode;
    } else {
      throw error;
    }
  }
}

if (require.main === module) start();

module.exports = {
  evaluate,
  listing: (text) => listing(compile(text)),
  run: (path, values) => run(path, valuesIn(values)).trimEnd(),
  sheet: (path, values) => results(readSheet(path), valuesIn(values)).trimEnd(),
};
