'use strict';
// From the text of a formula to a tree.

const { FormulaError, SYNTAX } = require('./errors.js');
const { FUNCTIONS, NUMBERS } = require('./code.js');

const NAME = /[A-Za-z][A-Za-z0-9_]*/y;
const MARKS = /<>|<=|>=|[-+*\/^(),=<>]/y;
const COMPARISONS = ['=', '<>', '<', '<=', '>', '>='];

// Reads tokens one at a time.
class Lexer {
  constructor(text, line) {
    this.text = text;
    this.line = line;
    this.at = 0;
  }

  fail(column, message) {
    throw new FormulaError(SYNTAX, `${this.line ? `${this.line}:` : ''}${column}: ${message}`);
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    return found && found[0];
  }

  next() {
    this.at += this.match(/[ \t]*/y).length;
    const column = this.at + 1;
    if (this.at === this.text.length) return { kind: 'end', text: '', column };
    const number = this.match(/[0-9][0-9.]*/y);
    if (number && !/^[0-9]+(\.[0-9]{1,6})?$/.test(number)) this.fail(column, `bad number '${number}'`);
    const name = this.match(NAME);
    const text = number || name || this.match(MARKS);
    if (!text) this.fail(column, `bad character '${String.fromCodePoint(this.text.codePointAt(this.at))}'`);
    this.at += text.length;
    return { kind: number ? 'number' : name ? 'name' : 'mark', text, column };
  }
}

class Parser {
  // `line` is 0 where the text is no line of a sheet; `definitions` has the numbers of parameters by name.
  constructor(text, line = 0, definitions = new Map()) {
    this.lexer = new Lexer(text, line);
    this.definitions = definitions;
    this.read = null;
  }

  // The token that comes next, read when it is needed, so that no error is found before its turn.
  get token() {
    if (!this.read) this.read = this.lexer.next();
    return this.read;
  }

  is(...marks) {
    return this.token.kind === 'mark' && marks.includes(this.token.text);
  }

  take() {
    const token = this.token;
    this.read = null;
    return token;
  }

  expect(kind, text) {
    if (this.token.kind !== kind || (text && this.token.text !== text)) this.unexpected();
    return this.take();
  }

  unexpected() {
    const { kind, text, column } = this.token;
    this.lexer.fail(column, kind === 'end' ? 'unexpected end' : `unexpected '${text}'`);
  }

  // A formula up to the end of the text.
  whole() {
    const tree = this.formula();
    if (this.token.kind !== 'end') this.unexpected();
    return tree;
  }

  formula() {
    const left = this.sum();
    return this.is(...COMPARISONS) ? this.binary(left, () => this.sum()) : left;
  }

  binary(left, right) {
    const { text, column } = this.take();
    return { kind: 'binary', mark: text, column, left, right: right() };
  }

  sum() {
    let left = this.product();
    while (this.is('+', '-')) left = this.binary(left, () => this.product());
    return left;
  }

  product() {
    let left = this.unary();
    while (this.is('*', '/')) left = this.binary(left, () => this.unary());
    return left;
  }

  unary() {
    if (!this.is('-')) return this.power();
    this.take();
    return { kind: 'negative', operand: this.unary() };
  }

  power() {
    const left = this.primary();
    return this.is('^') ? this.binary(left, () => this.unary()) : left;
  }

  primary() {
    if (this.token.kind === 'number') return { kind: 'number', text: this.take().text };
    if (this.token.kind === 'name') {
      const name = this.take();
      return this.is('(') ? this.call(name) : { kind: 'name', name: name.text };
    }
    if (!this.is('(')) this.unexpected();
    this.take();
    const inner = this.formula();
    this.expect('mark', ')');
    return inner;
  }

  call({ text, column }) {
    const [fewest, most] = this.arity(text) || this.lexer.fail(column, `unknown function '${text}'`);
    this.take();
    const given = [];
    if (!this.is(')')) {
      given.push(this.formula());
      while (this.is(',')) {
        this.take();
        given.push(this.formula());
      }
    }
    if (!this.is(')')) this.unexpected();
    if (given.length < fewest || given.length > most) {
      this.lexer.fail(column, `wrong number of arguments for ${text}`);
    }
    this.take();
    return { kind: 'call', name: text, column, given };
  }

  arity(name) {
    if (name === 'IF') return [3, 3];
    if (name === 'IFERROR') return [2, 2];
    if (this.definitions.has(name)) return [this.definitions.get(name), this.definitions.get(name)];
    return Object.hasOwn(NUMBERS, name) ? FUNCTIONS[NUMBERS[name]].slice(1) : null;
  }
}

module.exports = { Parser };
