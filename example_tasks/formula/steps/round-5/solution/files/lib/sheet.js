'use strict';
// From the text of a sheet to a program.

const { Compiler } = require('./compiler.js');
const { Parser } = require('./parser.js');
const { NUMBERS } = require('./code.js');

const FORMAT = /^(#,##)?0(\.0{1,6})?%?$/;

function isBlank(line) {
  return /^[ \t]*(#|$)/.test(line);
}

// The numbers of parameters of all definitions, which may be used above the line that they stand in.
function definitionsOf(lines) {
  const found = new Map();
  for (const line of lines) {
    const head = /^[ \t]*def[ \t]+([A-Za-z][A-Za-z0-9_]*)[ \t]*\(([^)]*)\)/.exec(line);
    if (head) found.set(head[1], head[2].trim() ? head[2].split(',').length : 0);
  }
  return found;
}

class Names {
  constructor(taken = []) {
    this.taken = new Set(taken);
  }

  add(parser, { text, column }) {
    if (this.taken.has(text)) parser.lexer.fail(column, `duplicate '${text}'`);
    this.taken.add(text);
    return text;
  }
}

function parseParameters(parser) {
  const names = new Names();
  const parameters = [];
  parser.expect('mark', '(');
  if (!parser.is(')')) {
    parameters.push(names.add(parser, parser.expect('name')));
    while (parser.is(',')) {
      parser.take();
      parameters.push(names.add(parser, parser.expect('name')));
    }
  }
  parser.expect('mark', ')');
  return parameters;
}

// The format that may stand behind the name of a cell.
function parseFormat({ lexer }) {
  const opening = lexer.match(/[ \t]*\[/y);
  if (!opening) return '';
  const column = lexer.at + opening.length;
  const end = lexer.text.indexOf(']', column);
  if (end < 0) lexer.fail(lexer.text.length + 1, 'unexpected end');
  const format = lexer.text.slice(column, end);
  if (!FORMAT.test(format)) lexer.fail(column, `bad format '${format}'`);
  lexer.at = end + 1;
  return format;
}

function compileSheet(text) {
  const lines = text.split('\n');
  const definitions = definitionsOf(lines);
  const compiler = new Compiler();
  compiler.definitions = [...definitions.keys()];
  const cells = new Names();
  const functions = new Names(['IF', ...Object.keys(NUMBERS)]);
  lines.forEach((line, index) => {
    if (isBlank(line)) return;
    const parser = new Parser(line, index + 1, definitions);
    const first = parser.expect('name');
    if (first.text === 'def') {
      const name = functions.add(parser, parser.expect('name'));
      const parameters = parseParameters(parser);
      parser.expect('mark', '=');
      compiler.add(parser.whole(), 'def', name, parameters);
    } else {
      const name = cells.add(parser, first);
      const format = parseFormat(parser);
      parser.expect('mark', '=');
      compiler.add(parser.whole(), 'cell', name, [], format);
    }
  });
  return compiler.program();
}

module.exports = { compileSheet };
