'use strict';
// Formulas for price sheets: the library and the program.

const { Compiler } = require('./lib/compiler.js');
const { FormulaError } = require('./lib/errors.js');
const { listing } = require('./lib/listing.js');
const { Machine } = require('./lib/machine.js');
const number = require('./lib/number.js');
const { Parser } = require('./lib/parser.js');

const GIVEN = /^([A-Za-z][A-Za-z0-9_]*)=(-?[0-9]+(\.[0-9]{1,6})?)$/;
const USAGE = `usage: formula.js eval FORMULA [NAME=NUMBER]...
       formula.js list FORMULA
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

function list(words) {
  if (words.length === 1) return listing(compile(words[0]));
  throw new Usage();
}

function main([command, ...words]) {
  if (command === 'list') return list(words);
  if (command === 'eval' && words.length) {
    return number.show(new Machine(compile(words[0]), valuesOf(words.slice(1))).run(compile(words[0]).parts[0])) + '\n';
  }
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
};
