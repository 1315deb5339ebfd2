'use strict';
// Formulas for price sheets: the library and the program.

const fs = require('fs');
const { Compiler } = require('./lib/compiler.js');
const { FormulaError } = require('./lib/errors.js');
const file = require('./lib/file.js');
const { listing } = require('./lib/listing.js');
const { Machine } = require('./lib/machine.js');
const number = require('./lib/number.js');
const { Parser } = require('./lib/parser.js');

const GIVEN = /^([A-Za-z][A-Za-z0-9_]*)=(-?[0-9]+(\.[0-9]{1,6})?)$/;
const USAGE = `usage: formula.js eval FORMULA [NAME=NUMBER]...
       formula.js list FORMULA
       formula.js list --file FILE
       formula.js build FORMULA FILE
       formula.js run FILE [NAME=NUMBER]...
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
  return number.show(new Machine(compile(text), valuesIn(values)).run(compile(text).parts[0]));
}

function write(path, bytes) {
  try {
    fs.writeFileSync(path, bytes);
  } catch {
    throw new Usage();
  }
  return '';
}

function run(path, values) {
  const program = file.load(path);
  try {
    return number.show(new Machine(program, values).run(program.parts[0])) + '\n';
  } catch (error) {
    if (error.message === 'damaged') error.message = `${path}: damaged`;
    throw error;
  }
}

function list(words) {
  if (words.length === 1) return listing(compile(words[0]));
  if (words.length === 2 && words[0] === '--file') return listing(file.load(words[1]));
  throw new Usage();
}

function build(words) {
  if (words.length === 2) return write(words[1], file.save(compile(words[0])));
  throw new Usage();
}

function main([command, ...words]) {
  if (command === 'list') return list(words);
  if (command === 'build') return build(words);
  if (command === 'eval' && words.length) {
    return number.show(new Machine(compile(words[0]), valuesOf(words.slice(1))).run(compile(words[0]).parts[0])) + '\n';
  }
  if (command === 'run' && words.length) return run(words[0], valuesOf(words.slice(1)));
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
};
