'use strict';
// Formulas for price sheets: the library and the program.

const fs = require('fs');
const { Compiler } = require('./lib/compiler.js');
const { FormulaError, RUN } = require('./lib/errors.js');
const file = require('./lib/file.js');
const { listing } = require('./lib/listing.js');
const { ErrorValue, Machine, LATEST, RULES, STEP_LIMIT } = require('./lib/machine.js');
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
       formula.js info FILE
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
function results(program, values, { limit, cell } = {}) {
  const machine = new Machine(program, values, limit);
  const rules = RULES[program.version || LATEST];
  const lines = [];
  for (const part of program.parts) {
    if (part.kind === 'formula' && !cell) lines.push(shown(machine.run(part), '', rules));
    if (part.kind === 'cell' && cell === part.name) lines.push(shown(machine.cell(part), part.format, rules));
    if (part.kind === 'cell' && !cell) lines.push(`${part.name} = ${shown(machine.cell(part), part.format, rules)}`);
  }
  if (cell && !lines.length) throw new FormulaError(RUN, `no cell '${cell}'`);
  return lines.map((line) => line + '\n').join('');
}

function shown(value, format, rules) {
  if (value instanceof ErrorValue) return value.text;
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

function run(path, values, options) {
  const program = file.load(path);
  try {
    return results(program, values, options);
  } catch (error) {
    if (error.message === 'damaged') error.message = `${path}: damaged`;
    throw error;
  }
}

function info(path) {
  const program = file.load(path);
  const bytes = fs.readFileSync(path);
  return [
    `version ${program.version}`,
    `constants ${program.constants.length}`,
    `names ${program.names.length}`,
    `parts ${program.parts.length}`,
    `code ${program.parts.reduce((sum, part) => sum + part.code.length, 0)}`,
    `checksum ${bytes.subarray(-4).toString('hex')}`,
  ].map((line) => line + '\n').join('');
}

// The options that stand before the other words, and those words.
function optionsOf(command, words) {
  const options = { limit: STEP_LIMIT };
  let rest = words;
  while (rest[0] === '--steps' || (rest[0] === '--cell' && command !== 'eval')) {
    const [name, value = ''] = rest;
    if (name === '--steps') {
      if (!/^[1-9][0-9]{0,6}$/.test(value) || Number(value) > 1000000) throw new Usage();
      options.limit = Number(value);
    } else {
      if (!/^[A-Za-z][A-Za-z0-9_]*$/.test(value)) throw new Usage();
      options.cell = value;
    }
    rest = rest.slice(2);
  }
  return [options, rest];
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
  if (command === 'info' && words.length === 1) return info(words[0]);
  const [options, [subject, ...given]] = optionsOf(command, words);
  if (subject === undefined) throw new Usage();
  if (command === 'eval') return results(compile(subject), valuesOf(given), options);
  if (command === 'run') return run(subject, valuesOf(given), options);
  if (command === 'sheet') return results(readSheet(subject), valuesOf(given), options);
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
